"""How far the built-in judge agrees with people, as measured; the figures stand in the foot of reports it judged."""

from typing import Final, NamedTuple

from libraryfs.models.defaults import LANGUAGE_MODEL


class Measured(NamedTuple):
    """A judge against labelled claims, beside the substring baseline on the same rows."""

    model: str
    rows: int
    data: str
    agreement: float
    kappa: float
    substring_agreement: float
    substring_kappa: float

    def in_words(self) -> str:
        """One line for the foot of a report."""
        better = self.kappa > self.substring_kappa and self.agreement > self.substring_agreement
        return (
            f"Judge: {self.model}, built in. On {self.rows} claims of {self.data}, labelled by people, it agrees with "
            f"them on {100 * self.agreement:.0f} %, kappa {self.kappa:.3f} (substring: "
            f"{100 * self.substring_agreement:.0f} %, kappa {self.substring_kappa:.3f})"
            + ("." if better else ": it is not better than substring. Use --no-llm-judge, or a larger model.")
        )


BUILT_IN_JUDGE: Final = Measured(
    model=LANGUAGE_MODEL.model,
    rows=419,
    data="ExpertQA",
    agreement=0.2721,
    kappa=-0.0013,
    substring_agreement=0.2697,
    substring_kappa=0.0,
)
