#!/bin/sh
# Any program will do: it finds its parameters in the environment (or in its arguments) and writes
# the result on its last line. The least is 0, at x = 1, y = 7 in the bowl.
awk -v x="$LATHE_PARAM_X" -v y="$LATHE_PARAM_Y" -v shape="$LATHE_PARAM_SHAPE" \
  -v power="$LATHE_PARAM_POWER" 'BEGIN {
    d = (x - 1) ^ 2 + (y - 7) ^ 2 / 4
    print (shape == "bowl") ? d : 1 + d ^ power
  }'
