"""How the benchmarks print a figure."""


def say(what: str, value: float, unit: str, note: str = "") -> None:
    print(f"{what:<44} {value:>10,.0f} {unit:<12} {note}", flush=True)
