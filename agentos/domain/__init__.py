"""The vocabulary as types: what a task, a run, an evolution and their parts are.

Every record is a frozen, slotted dataclass and holds only plain data (text, numbers, aware UTC
datetimes, tuples, other records, and JSON values), so that a record can be stored, hashed,
compared and sent anywhere. docs/concepts.md explains the words to a user; this package is what
they mean to the code.
"""

from agentos.domain.evolution import RUNNING_STATES as RUNNING_STATES
from agentos.domain.evolution import Arm as Arm
from agentos.domain.evolution import Asked as Asked
from agentos.domain.evolution import Attestation as Attestation
from agentos.domain.evolution import Candidate as Candidate
from agentos.domain.evolution import Consent as Consent
from agentos.domain.evolution import Decision as Decision
from agentos.domain.evolution import Diagnosis as Diagnosis
from agentos.domain.evolution import Earlier as Earlier
from agentos.domain.evolution import Edit as Edit
from agentos.domain.evolution import Ending as Ending
from agentos.domain.evolution import Evidence as Evidence
from agentos.domain.evolution import Evolution as Evolution
from agentos.domain.evolution import EvolutionState as EvolutionState
from agentos.domain.evolution import Fingerprint as Fingerprint
from agentos.domain.evolution import Layer as Layer
from agentos.domain.evolution import Manifest as Manifest
from agentos.domain.evolution import Migration as Migration
from agentos.domain.evolution import Parent as Parent
from agentos.domain.evolution import Rebase as Rebase
from agentos.domain.evolution import SafetyRate as SafetyRate
from agentos.domain.evolution import Sighting as Sighting
from agentos.domain.evolution import Site as Site
from agentos.domain.evolution import Trial as Trial
from agentos.domain.evolution import TrialSet as TrialSet
from agentos.domain.evolution import Verdict as Verdict
from agentos.domain.faults import SHARED as SHARED
from agentos.domain.faults import Fault as Fault
from agentos.domain.faults import KernelFault as KernelFault
from agentos.domain.faults import Origin as Origin
from agentos.domain.faults import box_fault as box_fault
from agentos.domain.faults import kernel_fault as kernel_fault
from agentos.domain.faults import kind_of as kind_of
from agentos.domain.faults import origin_of as origin_of
from agentos.domain.faults import word_of as word_of
from agentos.domain.models import Budget as Budget
from agentos.domain.models import Mode as Mode
from agentos.domain.models import ModelSpec as ModelSpec
from agentos.domain.models import Price as Price
from agentos.domain.models import Reply as Reply
from agentos.domain.people import Proposal as Proposal
from agentos.domain.people import ProposalState as ProposalState
from agentos.domain.people import Question as Question
from agentos.domain.probes import Pass as Pass
from agentos.domain.probes import Probe as Probe
from agentos.domain.resources import RESOURCE_NAME as RESOURCE_NAME
from agentos.domain.resources import TIER_OF as TIER_OF
from agentos.domain.resources import Effect as Effect
from agentos.domain.resources import Kind as Kind
from agentos.domain.resources import ResourceId as ResourceId
from agentos.domain.resources import Snapshot as Snapshot
from agentos.domain.resources import Tier as Tier
from agentos.domain.resources import Version as Version
from agentos.domain.resources import is_memory as is_memory
from agentos.domain.resources import tier_of as tier_of
from agentos.domain.reviews import Opinion as Opinion
from agentos.domain.reviews import Review as Review
from agentos.domain.runs import IMPORT as IMPORT
from agentos.domain.runs import CheckResult as CheckResult
from agentos.domain.runs import Cost as Cost
from agentos.domain.runs import Outcome as Outcome
from agentos.domain.runs import Result as Result
from agentos.domain.runs import Run as Run
from agentos.domain.runs import Step as Step
from agentos.domain.runs import is_reference as is_reference
from agentos.domain.tasks import Call as Call
from agentos.domain.tasks import Check as Check
from agentos.domain.tasks import InputFile as InputFile
from agentos.domain.tasks import Limits as Limits
from agentos.domain.tasks import Share as Share
from agentos.domain.tasks import Task as Task
from agentos.domain.tasks import TaskState as TaskState
from agentos.domain.tasks import share_of as share_of
from agentos.identity import Json as Json
from agentos.identity import canonical as canonical
from agentos.identity import digest as digest
from agentos.identity import new_id as new_id
