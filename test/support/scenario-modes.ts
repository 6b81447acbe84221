import { NFTABLES_STORIES } from './fake-kernel/world.js';
import type { ScenarioMode } from './scenario-world.js';

/** Every mode that tells the stories. */
export const SCENARIO_MODES: readonly ScenarioMode[] = [NFTABLES_STORIES];
