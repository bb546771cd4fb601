#!/bin/sh
# A very small coding agent: it runs the test, mends the first thing that it understands, runs the test again, commits,
# and promises that the work is done only when the test passes. Its prompt is its argument, and it does not need it.
echo "I run the test to see where things are."
if result=$(./test.sh); then
  echo "$result"
else
  echo "$result" | grep FAIL
  case $result in
    *"FAIL 14 "*) echo "4 and 9 are missing: I add them."
      sed 's/^take 5 V$/take 9 IX\ntake 5 V\ntake 4 IV/' roman.sh > .new ;;
    *"FAIL 49 "*) echo "40 is missing: I add it."
      sed 's/^take 10 X$/take 40 XL\ntake 10 X/' roman.sh > .new ;;
    *"FAIL 99 "*) echo "90 is missing: I add it."
      sed 's/^take 50 L$/take 90 XC\ntake 50 L/' roman.sh > .new ;;
  esac
  cat .new > roman.sh && rm .new
  git commit --quiet --all --message "Mend roman.sh, iteration $REFRAIN_ITERATION"
fi
if ./test.sh > /dev/null; then
  echo "The test passes now."
  echo "<promise>COMPLETE</promise>"
else
  echo "The test still fails; the next iteration goes on from here."
fi
