CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0013');
CREATE TABLE arrival (
	schedule_id VARCHAR NOT NULL, 
	path VARCHAR NOT NULL, 
	signature VARCHAR NOT NULL, 
	PRIMARY KEY (schedule_id, path)
)
 WITHOUT ROWID

;
CREATE TABLE attestation (
	seq INTEGER NOT NULL, 
	id VARCHAR NOT NULL, 
	body VARCHAR NOT NULL, 
	evolution_id VARCHAR NOT NULL, 
	PRIMARY KEY (seq), 
	UNIQUE (id)
);
CREATE TABLE audit (
	seq INTEGER NOT NULL, 
	at VARCHAR NOT NULL, 
	event VARCHAR NOT NULL, 
	subject VARCHAR NOT NULL, 
	detail VARCHAR NOT NULL, 
	previous VARCHAR NOT NULL, 
	hash VARCHAR NOT NULL, 
	PRIMARY KEY (seq)
);
CREATE TABLE candidate (
	seq INTEGER NOT NULL, 
	id VARCHAR NOT NULL, 
	body VARCHAR NOT NULL, 
	evolution_id VARCHAR NOT NULL, 
	PRIMARY KEY (seq), 
	UNIQUE (id)
);
CREATE TABLE consent (
	seq INTEGER NOT NULL, 
	id VARCHAR NOT NULL, 
	body VARCHAR NOT NULL, 
	evolution_id VARCHAR NOT NULL, 
	candidate_id VARCHAR NOT NULL, 
	PRIMARY KEY (seq), 
	UNIQUE (id)
);
CREATE TABLE cursor (
	name VARCHAR NOT NULL, 
	position INTEGER NOT NULL, 
	PRIMARY KEY (name)
);
CREATE TABLE delivery (
	seq INTEGER NOT NULL, 
	id VARCHAR NOT NULL, 
	body VARCHAR NOT NULL, 
	run_id VARCHAR NOT NULL, 
	schedule_id VARCHAR NOT NULL, 
	state VARCHAR NOT NULL, 
	path VARCHAR NOT NULL, 
	PRIMARY KEY (seq), 
	UNIQUE (id)
);
CREATE TABLE evidence (
	seq INTEGER NOT NULL, 
	id VARCHAR NOT NULL, 
	body VARCHAR NOT NULL, 
	fingerprint VARCHAR NOT NULL, 
	PRIMARY KEY (seq), 
	UNIQUE (id)
);
CREATE TABLE evolution (
	seq INTEGER NOT NULL, 
	id VARCHAR NOT NULL, 
	body VARCHAR NOT NULL, 
	evidence_id VARCHAR NOT NULL, 
	fingerprint_id VARCHAR NOT NULL, 
	state VARCHAR NOT NULL, resource VARCHAR DEFAULT '' NOT NULL, 
	PRIMARY KEY (seq), 
	UNIQUE (id)
);
CREATE TABLE feedback (
	seq INTEGER NOT NULL, 
	id VARCHAR NOT NULL, 
	body VARCHAR NOT NULL, 
	run_id VARCHAR NOT NULL, 
	task_key VARCHAR NOT NULL, 
	rating VARCHAR NOT NULL, 
	PRIMARY KEY (seq), 
	UNIQUE (id)
);
CREATE TABLE flag (
	seq INTEGER NOT NULL, 
	run_id VARCHAR NOT NULL, 
	reason VARCHAR NOT NULL, 
	flagged_at VARCHAR NOT NULL, 
	PRIMARY KEY (seq)
);
CREATE TABLE memo (
	"key" VARCHAR NOT NULL, 
	value VARCHAR NOT NULL, 
	PRIMARY KEY ("key")
);
CREATE TABLE notification (
	seq INTEGER NOT NULL, 
	id VARCHAR NOT NULL, 
	body VARCHAR NOT NULL, 
	subject VARCHAR NOT NULL, 
	state VARCHAR NOT NULL, 
	PRIMARY KEY (seq), 
	UNIQUE (id)
);
CREATE TABLE probe (
	seq INTEGER NOT NULL, 
	id VARCHAR NOT NULL, 
	body VARCHAR NOT NULL, 
	driving_sha256 VARCHAR NOT NULL, 
	evolution_id VARCHAR NOT NULL, 
	PRIMARY KEY (seq), 
	UNIQUE (id)
);
CREATE TABLE proposal (
	seq INTEGER NOT NULL, 
	id VARCHAR NOT NULL, 
	body VARCHAR NOT NULL, 
	run_id VARCHAR NOT NULL, 
	state VARCHAR NOT NULL, 
	PRIMARY KEY (seq), 
	UNIQUE (id)
);
CREATE TABLE pruned (
	seq INTEGER NOT NULL, 
	from_seq INTEGER NOT NULL, 
	to_seq INTEGER NOT NULL, 
	pruned_at VARCHAR NOT NULL, 
	PRIMARY KEY (seq)
);
CREATE TABLE question (
	seq INTEGER NOT NULL, 
	id VARCHAR NOT NULL, 
	body VARCHAR NOT NULL, 
	task_id VARCHAR NOT NULL, 
	root_id VARCHAR NOT NULL, 
	answer VARCHAR, 
	PRIMARY KEY (seq), 
	UNIQUE (id)
);
CREATE TABLE review (
	seq INTEGER NOT NULL, 
	id VARCHAR NOT NULL, 
	body VARCHAR NOT NULL, 
	evolution_id VARCHAR NOT NULL, 
	candidate_id VARCHAR NOT NULL, 
	PRIMARY KEY (seq), 
	UNIQUE (id)
);
CREATE TABLE run (
	no INTEGER NOT NULL, 
	id VARCHAR NOT NULL, 
	task_id VARCHAR NOT NULL, 
	task_key VARCHAR NOT NULL, 
	share VARCHAR NOT NULL, 
	attempt INTEGER NOT NULL, 
	commit_id VARCHAR NOT NULL, 
	result VARCHAR, 
	seq INTEGER, 
	started_at VARCHAR NOT NULL, 
	finished_at VARCHAR, 
	body VARCHAR NOT NULL, 
	PRIMARY KEY (no), 
	UNIQUE (id), 
	UNIQUE (seq), 
	UNIQUE (task_id, attempt)
);
CREATE TABLE run_resource (
	resource VARCHAR NOT NULL, 
	task_key VARCHAR NOT NULL, 
	seq INTEGER NOT NULL, 
	PRIMARY KEY (resource, task_key, seq)
)
 WITHOUT ROWID

;
CREATE TABLE safety_rate (
	seq INTEGER NOT NULL, 
	id VARCHAR NOT NULL, 
	body VARCHAR NOT NULL, 
	evolution_id VARCHAR NOT NULL, 
	candidate_id VARCHAR NOT NULL, 
	tree VARCHAR NOT NULL, 
	PRIMARY KEY (seq), 
	UNIQUE (id)
);
CREATE TABLE sighting (
	seq INTEGER NOT NULL, 
	id VARCHAR NOT NULL, 
	body VARCHAR NOT NULL, 
	run_id VARCHAR NOT NULL, 
	task_key VARCHAR NOT NULL, 
	fingerprint VARCHAR NOT NULL, 
	PRIMARY KEY (seq), 
	UNIQUE (id)
);
CREATE TABLE skipped_run (
	seq INTEGER NOT NULL, 
	id VARCHAR NOT NULL, 
	body VARCHAR NOT NULL, 
	schedule_id VARCHAR NOT NULL, 
	PRIMARY KEY (seq), 
	UNIQUE (id)
);
CREATE TABLE standing_check (
	seq INTEGER NOT NULL, 
	id VARCHAR NOT NULL, 
	body VARCHAR NOT NULL, 
	task_name VARCHAR NOT NULL, 
	PRIMARY KEY (seq), 
	UNIQUE (id)
);
CREATE TABLE step (
	no INTEGER NOT NULL, 
	run_id VARCHAR NOT NULL, 
	position INTEGER NOT NULL, 
	node VARCHAR NOT NULL, 
	action VARCHAR NOT NULL, 
	observation VARCHAR NOT NULL, 
	fault VARCHAR, 
	started_at VARCHAR NOT NULL, 
	duration_ms FLOAT NOT NULL, 
	PRIMARY KEY (no), 
	UNIQUE (run_id, position)
);
CREATE TABLE task (
	no INTEGER NOT NULL, 
	id VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	task_key VARCHAR NOT NULL, 
	share VARCHAR NOT NULL, 
	state VARCHAR NOT NULL, 
	agent VARCHAR NOT NULL, 
	created_at VARCHAR NOT NULL, 
	body VARCHAR NOT NULL, parent VARCHAR DEFAULT '' NOT NULL, schedule_id VARCHAR DEFAULT '' NOT NULL, 
	PRIMARY KEY (no), 
	UNIQUE (id)
);
CREATE TABLE trial (
	seq INTEGER NOT NULL, 
	id VARCHAR NOT NULL, 
	body VARCHAR NOT NULL, 
	evolution_id VARCHAR NOT NULL, 
	candidate_id VARCHAR NOT NULL, 
	task_id VARCHAR NOT NULL, 
	PRIMARY KEY (seq), 
	UNIQUE (id)
);
CREATE TABLE trial_pack (
	seq INTEGER NOT NULL, 
	evolution_id VARCHAR NOT NULL, 
	trials INTEGER NOT NULL, 
	cpu_s FLOAT NOT NULL, 
	body BLOB NOT NULL, 
	PRIMARY KEY (seq)
);
CREATE TABLE verdict (
	seq INTEGER NOT NULL, 
	id VARCHAR NOT NULL, 
	body VARCHAR NOT NULL, 
	evolution_id VARCHAR NOT NULL, 
	candidate_id VARCHAR NOT NULL, 
	PRIMARY KEY (seq), 
	UNIQUE (id)
);
CREATE INDEX ix_task_state ON task (state);
CREATE INDEX ix_run_task_key_seq ON run (task_key, seq);
CREATE INDEX ix_flag_run_id ON flag (run_id);
CREATE INDEX ix_sighting_fingerprint ON sighting (fingerprint);
CREATE INDEX ix_evolution_evidence_id ON evolution (evidence_id);
CREATE INDEX ix_evolution_fingerprint_id ON evolution (fingerprint_id);
CREATE INDEX ix_evolution_state ON evolution (state);
CREATE INDEX ix_candidate_evolution_id ON candidate (evolution_id);
CREATE INDEX ix_trial_evolution_id ON trial (evolution_id);
CREATE INDEX ix_verdict_evolution_id ON verdict (evolution_id);
CREATE INDEX ix_verdict_candidate_id ON verdict (candidate_id);
CREATE INDEX ix_consent_evolution_id ON consent (evolution_id);
CREATE INDEX ix_consent_candidate_id ON consent (candidate_id);
CREATE INDEX ix_attestation_evolution_id ON attestation (evolution_id);
CREATE INDEX ix_audit_subject ON audit (subject);
CREATE TRIGGER step_no_update BEFORE UPDATE ON step WHEN TRUE BEGIN SELECT RAISE(ABORT, 'rows of step are never changed'); END;
CREATE TRIGGER step_no_insert BEFORE INSERT ON step WHEN EXISTS (SELECT 1 FROM step WHERE no = NEW.no OR (run_id = NEW.run_id AND position = NEW.position)) BEGIN SELECT RAISE(ABORT, 'rows of step are never replaced'); END;
CREATE TRIGGER sighting_no_update BEFORE UPDATE ON sighting WHEN TRUE BEGIN SELECT RAISE(ABORT, 'rows of sighting are never changed'); END;
CREATE TRIGGER sighting_no_delete BEFORE DELETE ON sighting WHEN TRUE BEGIN SELECT RAISE(ABORT, 'rows of sighting are never removed'); END;
CREATE TRIGGER sighting_no_insert BEFORE INSERT ON sighting WHEN EXISTS (SELECT 1 FROM sighting WHERE seq = NEW.seq OR id = NEW.id) BEGIN SELECT RAISE(ABORT, 'rows of sighting are never replaced'); END;
CREATE TRIGGER evidence_no_update BEFORE UPDATE ON evidence WHEN TRUE BEGIN SELECT RAISE(ABORT, 'rows of evidence are never changed'); END;
CREATE TRIGGER evidence_no_delete BEFORE DELETE ON evidence WHEN TRUE BEGIN SELECT RAISE(ABORT, 'rows of evidence are never removed'); END;
CREATE TRIGGER evidence_no_insert BEFORE INSERT ON evidence WHEN EXISTS (SELECT 1 FROM evidence WHERE seq = NEW.seq OR id = NEW.id) BEGIN SELECT RAISE(ABORT, 'rows of evidence are never replaced'); END;
CREATE TRIGGER trial_no_update BEFORE UPDATE ON trial WHEN TRUE BEGIN SELECT RAISE(ABORT, 'rows of trial are never changed'); END;
CREATE TRIGGER trial_no_insert BEFORE INSERT ON trial WHEN EXISTS (SELECT 1 FROM trial WHERE seq = NEW.seq OR id = NEW.id) BEGIN SELECT RAISE(ABORT, 'rows of trial are never replaced'); END;
CREATE TRIGGER verdict_no_update BEFORE UPDATE ON verdict WHEN TRUE BEGIN SELECT RAISE(ABORT, 'rows of verdict are never changed'); END;
CREATE TRIGGER verdict_no_delete BEFORE DELETE ON verdict WHEN TRUE BEGIN SELECT RAISE(ABORT, 'rows of verdict are never removed'); END;
CREATE TRIGGER verdict_no_insert BEFORE INSERT ON verdict WHEN EXISTS (SELECT 1 FROM verdict WHERE seq = NEW.seq OR id = NEW.id) BEGIN SELECT RAISE(ABORT, 'rows of verdict are never replaced'); END;
CREATE TRIGGER flag_no_update BEFORE UPDATE ON flag WHEN TRUE BEGIN SELECT RAISE(ABORT, 'rows of flag are never changed'); END;
CREATE TRIGGER flag_no_delete BEFORE DELETE ON flag WHEN TRUE BEGIN SELECT RAISE(ABORT, 'rows of flag are never removed'); END;
CREATE TRIGGER flag_no_insert BEFORE INSERT ON flag WHEN EXISTS (SELECT 1 FROM flag WHERE seq = NEW.seq) BEGIN SELECT RAISE(ABORT, 'rows of flag are never replaced'); END;
CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit WHEN TRUE BEGIN SELECT RAISE(ABORT, 'rows of audit are never changed'); END;
CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit WHEN TRUE BEGIN SELECT RAISE(ABORT, 'rows of audit are never removed'); END;
CREATE TRIGGER audit_no_insert BEFORE INSERT ON audit WHEN EXISTS (SELECT 1 FROM audit WHERE seq = NEW.seq) BEGIN SELECT RAISE(ABORT, 'rows of audit are never replaced'); END;
CREATE TRIGGER run_no_update BEFORE UPDATE ON run WHEN OLD.result IS NOT NULL BEGIN SELECT RAISE(ABORT, 'a finished run is never changed'); END;
CREATE INDEX ix_task_parent ON task (parent);
CREATE INDEX ix_question_task_id ON question (task_id);
CREATE INDEX ix_question_root_id ON question (root_id);
CREATE TRIGGER question_decided_no_update BEFORE UPDATE ON question WHEN OLD.answer IS NOT NULL BEGIN SELECT RAISE(ABORT, 'a question is answered once'); END;
CREATE TRIGGER question_no_insert BEFORE INSERT ON question WHEN EXISTS (SELECT 1 FROM question WHERE seq = NEW.seq OR id = NEW.id) BEGIN SELECT RAISE(ABORT, 'rows of question are never replaced'); END;
CREATE TRIGGER question_no_delete BEFORE DELETE ON question BEGIN SELECT RAISE(ABORT, 'rows of question are never removed'); END;
CREATE INDEX ix_proposal_run_id ON proposal (run_id);
CREATE INDEX ix_proposal_state ON proposal (state);
CREATE TRIGGER proposal_decided_no_update BEFORE UPDATE ON proposal WHEN OLD.state <> 'open' BEGIN SELECT RAISE(ABORT, 'a proposal is answered once'); END;
CREATE TRIGGER proposal_no_insert BEFORE INSERT ON proposal WHEN EXISTS (SELECT 1 FROM proposal WHERE seq = NEW.seq OR id = NEW.id) BEGIN SELECT RAISE(ABORT, 'rows of proposal are never replaced'); END;
CREATE TRIGGER proposal_no_delete BEFORE DELETE ON proposal BEGIN SELECT RAISE(ABORT, 'rows of proposal are never removed'); END;
CREATE INDEX ix_safety_rate_evolution_id ON safety_rate (evolution_id);
CREATE INDEX ix_safety_rate_tree ON safety_rate (tree);
CREATE TRIGGER safety_rate_no_update BEFORE UPDATE ON safety_rate WHEN TRUE BEGIN SELECT RAISE(ABORT, 'rows of safety_rate are never changed'); END;
CREATE TRIGGER safety_rate_no_delete BEFORE DELETE ON safety_rate WHEN TRUE BEGIN SELECT RAISE(ABORT, 'rows of safety_rate are never removed'); END;
CREATE TRIGGER safety_rate_no_insert BEFORE INSERT ON safety_rate WHEN EXISTS (SELECT 1 FROM safety_rate WHERE seq = NEW.seq OR id = NEW.id) BEGIN SELECT RAISE(ABORT, 'rows of safety_rate are never replaced'); END;
CREATE INDEX ix_probe_driving_sha256 ON probe (driving_sha256);
CREATE INDEX ix_probe_evolution_id ON probe (evolution_id);
CREATE TRIGGER probe_no_update BEFORE UPDATE ON probe WHEN TRUE BEGIN SELECT RAISE(ABORT, 'rows of probe are never changed'); END;
CREATE TRIGGER probe_no_delete BEFORE DELETE ON probe WHEN TRUE BEGIN SELECT RAISE(ABORT, 'rows of probe are never removed'); END;
CREATE TRIGGER probe_no_insert BEFORE INSERT ON probe WHEN EXISTS (SELECT 1 FROM probe WHERE seq = NEW.seq OR id = NEW.id) BEGIN SELECT RAISE(ABORT, 'rows of probe are never replaced'); END;
CREATE INDEX ix_evolution_resource_state ON evolution (resource, state);
CREATE INDEX ix_run_resource_resource_seq ON run_resource (resource, seq);
CREATE INDEX ix_review_evolution_id ON review (evolution_id);
CREATE INDEX ix_review_candidate_id ON review (candidate_id);
CREATE TRIGGER review_no_update BEFORE UPDATE ON review WHEN TRUE BEGIN SELECT RAISE(ABORT, 'rows of review are never changed'); END;
CREATE TRIGGER review_no_delete BEFORE DELETE ON review WHEN TRUE BEGIN SELECT RAISE(ABORT, 'rows of review are never removed'); END;
CREATE TRIGGER review_no_insert BEFORE INSERT ON review WHEN EXISTS (SELECT 1 FROM review WHERE seq = NEW.seq OR id = NEW.id) BEGIN SELECT RAISE(ABORT, 'rows of review are never replaced'); END;
CREATE INDEX ix_trial_pack_evolution_id ON trial_pack (evolution_id);
CREATE TRIGGER trial_pack_no_update BEFORE UPDATE ON trial_pack WHEN TRUE BEGIN SELECT RAISE(ABORT, 'rows of trial_pack are never changed'); END;
CREATE TRIGGER trial_pack_no_delete BEFORE DELETE ON trial_pack WHEN TRUE BEGIN SELECT RAISE(ABORT, 'rows of trial_pack are never removed'); END;
CREATE TRIGGER trial_pack_no_insert BEFORE INSERT ON trial_pack WHEN EXISTS (SELECT 1 FROM trial_pack WHERE seq = NEW.seq) BEGIN SELECT RAISE(ABORT, 'rows of trial_pack are never replaced'); END;
CREATE TRIGGER trial_no_delete BEFORE DELETE ON trial WHEN NOT EXISTS (SELECT 1 FROM trial_pack WHERE evolution_id = OLD.evolution_id) BEGIN SELECT RAISE(ABORT, 'rows of trial are never removed'); END;
CREATE INDEX ix_task_schedule_id ON task (schedule_id);
CREATE INDEX ix_skipped_run_schedule_id ON skipped_run (schedule_id);
CREATE INDEX ix_delivery_run_id ON delivery (run_id);
CREATE INDEX ix_delivery_schedule_id ON delivery (schedule_id);
CREATE INDEX ix_delivery_state ON delivery (state);
CREATE INDEX ix_delivery_path ON delivery (path);
CREATE TRIGGER delivery_ended_no_update BEFORE UPDATE ON delivery WHEN OLD.state <> 'pending' BEGIN SELECT RAISE(ABORT, 'a delivery ends once'); END;
CREATE TRIGGER delivery_no_insert BEFORE INSERT ON delivery WHEN EXISTS (SELECT 1 FROM delivery WHERE seq = NEW.seq OR id = NEW.id) BEGIN SELECT RAISE(ABORT, 'rows of delivery are never replaced'); END;
CREATE TRIGGER delivery_no_delete BEFORE DELETE ON delivery BEGIN SELECT RAISE(ABORT, 'rows of delivery are never removed'); END;
CREATE INDEX ix_feedback_run_id ON feedback (run_id);
CREATE INDEX ix_feedback_task_key ON feedback (task_key);
CREATE INDEX ix_feedback_rating ON feedback (rating);
CREATE INDEX ix_standing_check_task_name ON standing_check (task_name);
CREATE INDEX ix_notification_subject ON notification (subject);
CREATE INDEX ix_notification_state ON notification (state);
CREATE TRIGGER feedback_no_update BEFORE UPDATE ON feedback WHEN TRUE BEGIN SELECT RAISE(ABORT, 'rows of feedback are never changed'); END;
CREATE TRIGGER feedback_no_delete BEFORE DELETE ON feedback WHEN TRUE BEGIN SELECT RAISE(ABORT, 'rows of feedback are never removed'); END;
CREATE TRIGGER feedback_no_insert BEFORE INSERT ON feedback WHEN EXISTS (SELECT 1 FROM feedback WHERE seq = NEW.seq OR id = NEW.id) BEGIN SELECT RAISE(ABORT, 'rows of feedback are never replaced'); END;
CREATE TRIGGER standing_check_no_update BEFORE UPDATE ON standing_check WHEN TRUE BEGIN SELECT RAISE(ABORT, 'rows of standing_check are never changed'); END;
CREATE TRIGGER standing_check_no_delete BEFORE DELETE ON standing_check WHEN TRUE BEGIN SELECT RAISE(ABORT, 'rows of standing_check are never removed'); END;
CREATE TRIGGER standing_check_no_insert BEFORE INSERT ON standing_check WHEN EXISTS (SELECT 1 FROM standing_check WHERE seq = NEW.seq OR id = NEW.id) BEGIN SELECT RAISE(ABORT, 'rows of standing_check are never replaced'); END;
CREATE TRIGGER pruned_no_update BEFORE UPDATE ON pruned WHEN TRUE BEGIN SELECT RAISE(ABORT, 'rows of pruned are never changed'); END;
CREATE TRIGGER pruned_no_delete BEFORE DELETE ON pruned WHEN TRUE BEGIN SELECT RAISE(ABORT, 'rows of pruned are never removed'); END;
CREATE TRIGGER pruned_no_insert BEFORE INSERT ON pruned WHEN EXISTS (SELECT 1 FROM pruned WHERE seq = NEW.seq) BEGIN SELECT RAISE(ABORT, 'rows of pruned are never replaced'); END;
CREATE TRIGGER step_no_delete BEFORE DELETE ON step WHEN NOT EXISTS (SELECT 1 FROM run JOIN pruned ON run.seq BETWEEN pruned.from_seq AND pruned.to_seq WHERE run.id = OLD.run_id) BEGIN SELECT RAISE(ABORT, 'rows of step are never removed'); END;
CREATE INDEX ix_run_result ON run (result);
CREATE INDEX ix_audit_event ON audit (event);
