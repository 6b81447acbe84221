// Some packet files in mode nftables on the other kernel.
import '../../support/namespace.js';

import { repeatHere } from '../../support/lab/repeat.js';

void repeatHere(
  'nftables',
  () => import('../source-ranges.test.js'),
  () => import('../fragments-and-errors.test.js'),
);
