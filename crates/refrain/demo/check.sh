#!/bin/sh
# Checks the scripts that are there.
failed=0
check() { # script, expected
  [ ! -e "$1" ] || [ "$(sh "$1" abc)" = "$2" ] || { echo "FAIL $1: not $2"; failed=1; }
}
check upper.sh ABC
check double.sh abcabc
check shout.sh ABCABC
exit $failed
