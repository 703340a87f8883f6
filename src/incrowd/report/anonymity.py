"""The picture of a community's crowds: how many people are within reach, over the radius."""

from __future__ import annotations

import numpy as np

from incrowd.measures.anonymity.assess import CURVE, CommunityAnonymity
from incrowd.report.charts import picture
from incrowd.study.figures import Chart, Series


def crowd_chart(result: CommunityAnonymity) -> Chart:
    """Return crowd sizes over the radius: the median member, and the most and least exposed tenth."""
    tenth, half, most = np.quantile(result.curve, (0.1, 0.5, 0.9), axis=0)
    options = result.options
    return Chart(
        kind="lines",
        title=f"How large the crowd is in {options.community}",
        sentence=(
            "Read upwards from a distance: that many members, oneself included, write at least as alike. "
            f"At {options.radius:g} the median member has {np.median(result.sizes):g}."
        ),
        x_label="distance (0 = same words, 1 = none in common)",
        y_label="members within it",
        series=(
            Series.of("most exposed tenth", CURVE.tolist(), tenth.tolist()),
            Series.of("median member", CURVE.tolist(), half.tolist()),
            Series.of("least exposed tenth", CURVE.tolist(), most.tolist()),
        ),
        y_log=True,
        lines=(float(options.wanted),),
    )


def crowd_picture(result: CommunityAnonymity) -> str:
    """Return the chart as a stand-alone SVG file."""
    return picture(crowd_chart(result))
