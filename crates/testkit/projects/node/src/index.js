export { compare } from './compare.js';
export { parse } from './parse.js';
