/** The parts of a version: its numbers and, behind a dash, what comes before its release. */
export function parse(text) {
  const [numbers, early] = text.split('-', 2);
  return { numbers: numbers.split('.').map(Number), early };
}
