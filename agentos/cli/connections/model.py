"""``agentos model``: which models there are, adding one, and trying whether one answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentos.cli.group import AsJson, Yes, noun
from agentos.cli.output import confirm, print_json, print_table, print_text, tell_progress
from agentos.errors import ErrorKind, ModelFailed, UserError
from agentos.home import Home
from agentos.models.stop import model_stop

if TYPE_CHECKING:
    from agentos.cli.connections.model_adding import Line
    from agentos.domain import ModelSpec
    from agentos.settings import Settings

app = noun("Add, test and stop the models that agents ask.")


_TEST_S = 120.0
_HINTS: Mapping[str, str] = {
    "auth": "When that is mended, try again",
    "unreachable": "Look whether the provider's api_base in agentos.toml is right and its server runs",
    "timeout": "The server took the connection but did not answer in time; look at its log",
    "overloaded": "The provider is overloaded or your quota is used up; try again later",
    "cut": "A model that reasons needs room: `agentos model add {name} --model {model} --parameter max_tokens=8192`",
    "slow": "Take a faster model, or a machine that does less beside it",
    "malformed": "Look whether its api_base is whole (most end in /v1): `agentos model list`",
    "request": "Look whether the model takes such a request, and has the parameters of its resource",
    "budget": "Raise [budget] in agentos.toml",
    "day_budget": "Raise [budget] in agentos.toml, or wait until midnight UTC",
}


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the models, where each is reached, and today's calls (days are those of UTC)."""
    from agentos.cli.connections.model_adding import lines

    found = lines(Home.find())
    if as_json:
        print_json(found)
        return
    if (stopped := model_stop(Home.find())) is not None:
        print_text(
            f"{stopped.principal} stopped all model calls; `agentos model resume` lets them go on.", "yellow"
        )
    print_table(
        ["name", "model", "provider", "key", "price", "calls", "tokens", "usd", "faults"],
        [_row(line) for line in found],
        empty="There is no model. Try: agentos model add NAME --model openai/… --provider P --api-base URL",
        below=True,
    )


def _row(line: Line) -> list[str]:
    price = f"{line.price.input:g}/{line.price.output:g}" if line.price else ""
    return [
        line.name + (" (default)" if line.default else ""),
        line.model,
        line.provider,
        line.key or ("-" if line.provider else ""),  # none is needed
        price,
        f"{line.calls:,}" + (f" +{line.served:,} served" if line.served else ""),
        f"{line.tokens:,}",
        "unknown" if line.calls and line.usd is None else f"{line.usd or 0.0:.4f}",
        ", ".join(f"{count} {kind}" for kind, count in line.faults.items()),
    ]


@app.command(
    example="agentos model add main --model ollama_chat/qwen3 --provider local --api-base http://127.0.0.1:11434"
)
def add(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    model: Annotated[
        str,
        typer.Option(
            metavar="PROVIDER/MODEL", help="As litellm names it: openai/gpt-5, ollama_chat/qwen3, …"
        ),
    ],
    provider: Annotated[
        str, typer.Option(metavar="NAME", help="The [providers.NAME] of agentos.toml to use.")
    ] = "",
    api_base: Annotated[str, typer.Option(metavar="URL", help="Where that provider is reached.")] = "",
    key_env: Annotated[
        str, typer.Option(metavar="VAR", help="The environment variable that holds its key.")
    ] = "",
    parameter: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Sent with each request: temperature=0.2. Repeatable."),
    ] = None,
    fallback: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="The model to ask when this one is away. Repeatable, in order."),
    ] = None,
    input_price: Annotated[
        float | None, typer.Option(metavar="USD", min=0, help="US dollars for a million tokens of input.")
    ] = None,
    output_price: Annotated[
        float | None, typer.Option(metavar="USD", min=0, help="US dollars for a million tokens of output.")
    ] = None,
    context: Annotated[
        int | None,
        typer.Option(metavar="TOKENS", min=1, help="How many fit into a request; of a new model 32768."),
    ] = None,
    description: Annotated[str, typer.Option(metavar="TEXT", help="What it is good for.")] = "",
    default: Annotated[
        bool, typer.Option("--default", help="Agents use it unless they name another.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Add a model, or change one: a resource of the registry, and its provider in agentos.toml.

    The first model becomes the default. Of a model that is there, what you leave out stays as it is.
    """
    from agentos.cli.connections.model_adding import TypedModel, add_model
    from agentos.gateway.client import why_not_installed

    if (input_price is None) != (output_price is None):
        raise UserError("Expected --input-price and --output-price together; found only one")
    wanted = TypedModel(
        name,
        model,
        provider,
        api_base,
        key_env,
        parameters=tuple(parameter or ()),
        fallbacks=tuple(fallback or ()),
        prices=None if input_price is None or output_price is None else (input_price, output_price),
        context_tokens=context,
        description=description,
        default=default,
    )
    home = Home.find()
    done = add_model(home, wanted)
    if as_json:
        print_json(done)
        return
    print_text(
        f"The model '{name}' is {done.change}.{' It is the default.' if done.default else ''}", "green"
    )
    if done.settings:
        print_text("agentos.toml was changed.")
    print_text(why_not_installed() or f"Next: agentos model test {name}")


@app.command("default")
def default_(
    name: Annotated[str, typer.Argument(metavar="NAME", help='"" for none.')], as_json: AsJson = False
) -> None:
    """Choose the model of agents that name none; with "" none, as before the first was added."""
    from agentos.cli.connections.model_adding import set_default

    changed = set_default(Home.find(), name)
    if as_json:
        print_json({"default": name, "changed": changed})
        return
    told = f"The default is '{name}' now." if name else "There is no default now."
    print_text(told if changed else "It is so already.", "green")


@app.command()
def remove(
    name: Annotated[str, typer.Argument(metavar="NAME")], yes: Yes = False, as_json: AsJson = False
) -> None:
    """Take a model out of the registry, and out of the settings where it is the default. Its history stays.

    Its provider stays in agentos.toml. Refused while another model falls back to it, or an agent names it.
    """
    from agentos.cli.connections.model_adding import check_unused, remove_model
    from agentos.registry.store import Registry

    home = Home.find()
    check_unused(Registry(home.registry), name)
    confirm(f"Remove the model '{name}'?", yes=yes)
    done = remove_model(home, name)
    if as_json:
        print_json(done)
        return
    print_text(
        f"The model '{name}' is removed; `agentos registry log model/{name}` has its history.", "green"
    )
    if done.default:
        print_text("It was the default, and there is none now. Next: agentos model default NAME", "yellow")


@app.command()
def stop(
    reason: Annotated[str, typer.Option("--reason", "-m", metavar="TEXT", help="Why, for the record.")] = "",
    as_json: AsJson = False,
) -> None:
    """Stop all model calls of this home at once: those under way end, none is begun. What needs a model waits."""
    _turn(reason, stopped=True, as_json=as_json)


@app.command()
def resume(
    reason: Annotated[str, typer.Option("--reason", "-m", metavar="TEXT", help="Why, for the record.")] = "",
    as_json: AsJson = False,
) -> None:
    """Let model calls go on after `agentos model stop`."""
    _turn(reason, stopped=False, as_json=as_json)


def _turn(reason: str, *, stopped: bool, as_json: bool) -> None:
    from agentos.daemon import model_stop
    from agentos.evolver.promote.consent import person

    (model_stop.stop if stopped else model_stop.resume)(Home.find(), person(), reason)
    if as_json:
        print_json({"stopped": stopped, "reason": reason})
    else:
        print_text("No model is asked from now on." if stopped else "Models are asked again.", "green")


@app.command("test")
def try_(name: Annotated[str, typer.Argument(metavar="NAME")] = "default", as_json: AsJson = False) -> None:
    """Ask a model one small thing, in the way in which the daemon asks it."""
    from agentos.gateway.client import why_not_installed
    from agentos.models.resolving import spec_of
    from agentos.models.secrets import read_keys
    from agentos.registry.store import Registry
    from agentos.settings import load_settings

    if fault := why_not_installed():
        raise UserError(fault, kind=ErrorKind.NOT_INSTALLED)
    home = Home.find()
    settings = load_settings(home.settings)
    registry = Registry(home.registry)
    spec = spec_of(registry, registry.stable(), name, settings.model)
    read_keys(home.keys)  # what is wrong with them is said better here than by a gateway that ends
    if not as_json:
        tell_progress(f"A gateway is started, which takes some seconds; then '{spec.name}' is asked.")
    try:
        tried = _try(home, settings, spec)
    except ModelFailed as error:
        hint = _HINTS.get(error.kind, "See logs/gateway.log of the home")
        hint = "" if model_stop(home) else ". " + hint.format(name=spec.name, model=spec.model)
        sentence = f"'{spec.name}' gave no usable answer ({error.kind}): {str(error).rstrip('.')}{hint}"
        failed = UserError(sentence, kind=error.kind)
        if not as_json:
            raise failed from None
        told = {"kind": error.kind, "message": str(error), "type_next": list(failed.type_next)}
        print_json({"model": spec.name, "ok": False, **told})
        raise typer.Exit(1) from None
    if as_json:
        print_json(tried)
        return
    usd = "price unknown" if tried["usd"] is None else f"{tried['usd']:.6f} USD"
    print_text(
        f"'{tried['answered_by']}' answered in {tried['latency_ms']:.0f} ms: "
        f"{tried['input_tokens']} tokens in, {tried['output_tokens']} out, {usd}",
        "green",
    )


def _try(home: Home, settings: Settings, spec: ModelSpec) -> dict[str, Any]:
    import os
    import time

    from agentos.domain import Budget, Mode, new_id
    from agentos.gateway.client import GatewayModels
    from agentos.ports import Grant

    socket = f"gateway-{os.getpid()}.sock"  # beside that of the daemon
    models = GatewayModels(home, settings, socket_name=socket)
    try:
        budget = Budget(calls=1, tokens=50_000, usd=settings.budget.run_usd)
        session = models.open(Grant(new_id("test"), Mode.LIVE, (spec,), budget))
        request = {"messages": [{"role": "user", "content": "Answer with the word: ok"}], "max_tokens": 1024}
        reply = session.complete(request, time.monotonic() + _TEST_S)
    finally:
        models.close()
        for left in (socket, f"{socket}.lock"):
            (home.run / left).unlink(missing_ok=True)
    return {
        "model": spec.name,
        "ok": True,
        "answered_by": reply.model,
        "latency_ms": reply.latency_ms,
        "input_tokens": reply.input_tokens,
        "output_tokens": reply.output_tokens,
        "usd": reply.usd,
    }
