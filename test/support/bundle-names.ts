/** What vm/bundle.ts makes in its folder. tap knows its own frames by such a path. */
export const TAP = 'node_modules/@tapjs/tap.js';
export const TEST_FILES = 'tests.js';
