import { parse } from './parse.js';

/** 1 where a is newer, -1 where b is, 0 where they are the same. */
export function compare(a, b) {
  const [left, right] = [parse(a), parse(b)];
  for (let place = 0; place < 3; place += 1) {
    if (left.numbers[place] !== right.numbers[place]) {
      return left.numbers[place] > right.numbers[place] ? 1 : -1;
    }
  }
  if (left.early === right.early) return 0;
  if (left.early === undefined) return 1;
  if (right.early === undefined) return -1;
  return left.early > right.early ? 1 : -1;
}
