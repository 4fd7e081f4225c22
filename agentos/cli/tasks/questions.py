"""Questions that runs ask people: found by an id, shown, and answered at the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from agentos.cli.output import print_text
from agentos.daemon.people.answers import chosen, give
from agentos.domain import Question
from agentos.errors import Conflict, NotFound, UserError
from agentos.home import Home
from agentos.ledger.reading import Reader


def questions_of(reader: Reader, id: str) -> Sequence[Question]:
    """The open questions that the id of a run, a task or a question stands for.

    Raises Conflict when it waits for nothing, and NotFound for an id that nobody has.
    """
    for kind in ("run", "task", "question"):
        try:
            found = reader.resolve(kind, id)
            break
        except NotFound:
            continue
    else:
        raise NotFound(f"There is no run, task or question '{id}'. `agentos run answer` shows what is asked.")
    if kind == "question":
        return [reader.get(Question, found)]
    task = reader.task(reader.run(found).task_id if kind == "run" else found)
    questions = reader.open_questions(reader.root_of(task).id)
    own = [question for question in questions if found in (question.run_id, question.task_id)]
    if not questions:
        state = reader.task_view(task.id).state.value
        raise Conflict(f"{found} waits for no answer: its task is {state}.")
    return own or questions


def tell(question: Question) -> None:
    """Show it, and what to type, or what was answered."""
    if question.answer is not None:
        print_text(f"asked      {question.text}\nanswered   {question.answer}")
        return
    print_text(f"asks       {question.text}", "yellow")
    for number, choice in enumerate(question.choices, 1):
        print_text(f"           {number}  {choice}")
    what = "--choice NUMBER" if question.choices else "'your answer'"
    print_text(f"           type: agentos run answer {question.id} {what}", "dim")


def ask_here(home: Home, question: Question) -> None:
    """Ask the person at the terminal until there is an answer that may be."""
    tell(question)
    while True:
        text = input("answer: ").strip()
        number = int(text) if question.choices and text.isdecimal() and len(text) < 4 else 0
        try:
            give(home, question, chosen(question, text, number))
        except Conflict:  # somebody else was faster
            return
        except UserError as error:
            print_text(str(error), "red")
        else:
            return
