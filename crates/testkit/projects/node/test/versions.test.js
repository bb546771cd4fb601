import assert from 'node:assert/strict';
import { test } from 'node:test';

import { compare } from '../src/index.js';

test('the same version is not newer', () => {
  assert.equal(compare('1.2.3', '1.2.3'), 0);
});

test('numbers are compared as numbers', () => {
  assert.equal(compare('1.10.0', '1.9.0'), 1);
});

test('what comes before a release is older', () => {
  assert.equal(compare('2.0.0-beta', '2.0.0'), -1);
});
