import { IPTABLES_STORIES } from './fake-iptables/world.js';
import { KERNELSPACE_STORIES } from './fake-hns/world.js';
import { NFTABLES_STORIES } from './fake-kernel/world.js';
import { IPVS_STORIES } from './fake-ipvs/world.js';
import type { ScenarioMode } from './scenario-world.js';
import { TOY_STORIES } from './toy-mode/mode.js';

/** Every mode that tells the stories. */
export const SCENARIO_MODES: readonly ScenarioMode[] = [
  NFTABLES_STORIES,
  IPTABLES_STORIES,
  IPVS_STORIES,
  KERNELSPACE_STORIES,
  TOY_STORIES,
];

/** Those of Linux that a configuration can name. */
export const LINUX_STORIES: readonly ScenarioMode[] = [NFTABLES_STORIES, IPTABLES_STORIES, IPVS_STORIES];
