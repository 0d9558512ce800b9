"""The numbers that the papers print. Another machine and another time: a ratio to them means little, their order a lot.

EIPBench: "Benchmarking integration pattern implementations", tables 6 and 7; two Intel X5650 with 12 cores, JDK 1.7.
HW-EIP: "Hardware accelerated application integration processing", section 6; an FPGA with 100 MHz. The figures of both
are printed without numbers.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Printed:
    """Messages per second, +/- the confidence interval."""

    mean: int
    interval: int


EARLY_OUT, JAVA, TABLES = "Java/AC (early-out)", "Java/AC", "TIP/AC"
COLUMNS = (EARLY_OUT, JAVA, TABLES)
TABLE_6: dict[str, dict[str, Printed]] = {
    "BL": {JAVA: Printed(300_837, 8_252)},
    "RT-1-A": {EARLY_OUT: Printed(174_795, 8_100), JAVA: Printed(176_319, 4_704), TABLES: Printed(179_528, 5_485)},
    "RT-1-B": {EARLY_OUT: Printed(158_838, 3_002), JAVA: Printed(100_070, 2_635), TABLES: Printed(163_672, 4_186)},
    "RT-1-C": {EARLY_OUT: Printed(115_599, 3_901), JAVA: Printed(98_237, 2_261), TABLES: Printed(115_859, 3_417)},
    "RT-2-D": {EARLY_OUT: Printed(165_644, 3_132), TABLES: Printed(176_926, 6_513)},
    "MT-1-A": {JAVA: Printed(172_545, 7_612), TABLES: Printed(193_378, 4_407)},
}
TABLE_7: dict[str, dict[str, Printed]] = {
    "MDS-1-A": {JAVA: Printed(70_585, 2_323)},
    "MDS-1-B": {JAVA: Printed(31_649, 1_131)},
    "MDS-1-C": {JAVA: Printed(14_774, 513)},
    "MDS-1-D": {JAVA: Printed(9_456, 268)},
    "MDS-1-E": {JAVA: Printed(4_906, 139)},
    "MDS-1-F": {JAVA: Printed(1_995, 85)},
    "MDS-2-10": {JAVA: Printed(161_918, 4_883)},
    "MDS-3-A": {},
    "MDS-3-B": {JAVA: Printed(172_544, 6_156)},
}
NOTE_6 = "The row D (join) of the paper is RT-2-D here, as in its table 3."
NOTE_7 = (
    "The paper prints MDS-3 as A (duplicate after 100,000); its section 5.3 calls that B, and so does this report. "
    "Its section 5.3 has no redelivery in MDS-1-A, its table 7 has one; here it is one."
)
SATURATED_AFTER = 3
"""omega after which more users bring Java/AC nothing (Q5)."""
FPGA_MEGABITS = 800
"""What the FPGA reaches for large messages, in MBit/s (figure 10 of HW-EIP)."""
