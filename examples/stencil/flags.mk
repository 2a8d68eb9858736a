# How kernel.c is compiled. The Makefile reads these two values and accepts no others.

# karve: knob OPT in -O1,-O2,-O3
OPT = -O1

# What the compiler may assume of the processor. none: any of its family. native: this one.
# karve: knob ARCH in none,native
ARCH = none
