# SPDX-License-Identifier: GPL-2.0-or-later
# The boards of hw/arm/corstone-boards.c, and semihosting; nothing else.
CONFIG_CORSTONE=y
CONFIG_SEMIHOSTING=y
CONFIG_ARM_COMPATIBLE_SEMIHOSTING=y
