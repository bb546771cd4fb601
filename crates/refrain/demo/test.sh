#!/bin/sh
# The test that fails at first.
cd "$(dirname "$0")" || exit 1
failed=0
check() { # number, expected
  got=$(./roman.sh "$1")
  if [ "$got" = "$2" ]; then echo "ok   $1 is $2"; else echo "FAIL $1 is $2, not $got"; failed=1; fi
}
check 7 VII
check 14 XIV
check 49 XLIX
check 99 XCIX
exit $failed
