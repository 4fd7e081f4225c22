"""Answers to a form of a web page."""

from pathlib import Path
from urllib.parse import parse_qs

from pydantic import BaseModel, Field

TOOL = {
    "name": "form_answers",
    "description": "Reads the answers to a web form, one a line as a browser sends them: for each question how many gave an answer, how many left it empty, and how many were not asked (it is not in the line), and who left something empty; a question that is there twice counts with its last answer",
    "effects": ["read"],
    "dependencies": [],
}

QUESTIONS = ("food", "song", "bus")


class Input(BaseModel):
    path: str = Field(description="Lines of the form: name=value&name=value, encoded as in a URL")


class Question(BaseModel):
    answered: int = 0
    empty: int = 0
    absent: int = 0


class Output(BaseModel):
    questions: dict[str, Question]
    incomplete: list[str]


def answers(line: str) -> dict[str, str]:
    fields = parse_qs(line.strip())
    return {name: values[-1].strip() for name, values in fields.items()}


def run(input: Input) -> Output:
    questions = {name: Question() for name in QUESTIONS}
    incomplete: list[str] = []
    for line in Path(input.path).read_text(encoding="utf-8").splitlines():
        given = answers(line)
        if not given:
            continue
        for name, question in questions.items():
            if name not in given:
                question.absent += 1
            elif given[name]:
                question.answered += 1
            else:
                question.empty += 1
        if any(given.get(name) == "" for name in QUESTIONS):
            incomplete.append(given.get("name", "?"))
    return Output(questions=questions, incomplete=incomplete)
