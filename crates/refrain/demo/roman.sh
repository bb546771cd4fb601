#!/bin/sh
# Prints a number from 1 to 99 in Roman numerals.
n=$1
out=
take() { # value, numeral
  while [ "$n" -ge "$1" ]; do out=$out$2; n=$((n - $1)); done
}
take 50 L
take 10 X
take 5 V
take 1 I
echo "$out"
