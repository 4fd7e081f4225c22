"""Numbers in words."""

from pydantic import BaseModel

TOOL = {
    "name": "number_words",
    "description": "English words of whole numbers below a million, as on a cheque: twenty-one, one hundred and five, two thousand three hundred and forty",
    "effects": ["pure"],
    "dependencies": [],
}


SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
    " seventeen eighteen nineteen"
).split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()


class Input(BaseModel):
    numbers: list[int]


class Output(BaseModel):
    words: list[str]
    longest: str | None


def below_hundred(number: int) -> str:
    if number < 20:
        return SMALL[number]
    tens, ones = divmod(number, 10)
    return TENS[tens - 2] + (f"-{SMALL[ones]}" if ones else "")


def below_thousand(number: int) -> str:
    hundreds, rest = divmod(number, 100)
    if not hundreds:
        return below_hundred(rest)
    words = f"{SMALL[hundreds]} hundred"
    return f"{words} and {below_hundred(rest)}" if rest else words


def words(number: int) -> str:
    if not 0 <= number < 1_000_000:
        raise ValueError(f"{number} is not below a million")
    thousands, rest = divmod(number, 1000)
    if not thousands:
        return below_thousand(rest)
    joint = " and " if 0 < rest < 100 else " "
    return f"{below_thousand(thousands)} thousand" + (joint + below_thousand(rest) if rest else "")


def run(input: Input) -> Output:
    written = [words(number) for number in input.numbers]
    return Output(words=written, longest=max(written, key=len, default=None))
