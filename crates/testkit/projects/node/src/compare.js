import { parse } from './parse.js';

/** 1 where a is newer, -1 where b is, 0 where they are the same. */
export function compare(a, b) {
  const [left, right] = [parse(a), parse(b)];
  for (let place = 0; place < 3; place += 1) {
    if (left.numbers[place] !== right.numbers[place]) {
      return left.numbers[place] > right.numbers[place] ? 1 : -1;
    }
  }
  return 0;
}
