import { setTimeout } from 'node:timers/promises';
import type { Family } from '../../base/ip.js';
import type { Log } from '../../base/log.js';
import type { KernelspaceConfig } from '../../config/config.js';
import { hcnFeatures, type HcnFeatures } from '../../native/contract.js';
import type { FamilyTable } from '../../plan/types.js';
import { NO_FOOTPRINT } from '../removal/footprint.js';
import { ModeError, type ModeParts, type OpenMode } from '../mode.js';
import { Reconciler } from '../reconciler.js';
import { KernelspaceDriver, type Look } from './driver.js';
import { LoadBalancerFailures } from './load-balancer-failures.js';
import { Modifying } from './modifying.js';
import { waitForHns } from './passing.js';
import { printOperation } from './print.js';
import { renderTables } from './render.js';
import { sourceVipOf } from './resolution.js';
import { NetworkWatch, type Looked } from './watch.js';
import type { FamilySettings } from './settings.js';

function settingsOf({ kernelspace }: ModeParts['config']): KernelspaceConfig {
  if (kernelspace === null) throw new TypeError('the configuration is of another mode');
  return kernelspace;
}

/** @throws ModeError when HNS is not there, or too old for the mode or for what is configured. */
export async function open(parts: ModeParts, families: readonly Family[]): Promise<OpenMode> {
  const { config, addon, log, now, onTransaction, interfaceMac } = parts;
  const settings = settingsOf(config);
  const version = await waitForHns(
    () => addon.hcn.hcnVersion(),
    (ms) => setTimeout(ms),
    (error) => {
      log.warn('HNS does not answer yet, waiting for it', { error: error.message });
    },
  );
  const features = hcnFeatures(version);
  const served = servedFamilies(families, features);
  const { major, minor } = version;
  log.info(0, 'HNS', { version: `${major}.${minor}`, network: settings.networkName, families: served.join() });
  requireFeatures(settings, features, `${major}.${minor}`);
  warnOfLacks(log, { families, served, features, release: `${major}.${minor}` });
  const modifying = new Modifying(features.modifyLoadBalancer, () => {
    log.warn(
      `HNS ${major}.${minor} reports a load balancer as changed that is not: from now on load balancers are deleted and created anew`,
    );
  });
  const failures = new LoadBalancerFailures();
  const made = new Map<Family, Looked>();
  const networks = new NetworkWatch(addon.hcn, () => made.values(), now);
  const driverOf = (family: Family): KernelspaceDriver => {
    const options = familyOptions(settings, features, family, served);
    return new KernelspaceDriver({
      ...options,
      hcn: addon.hcn,
      now,
      interfaceMac,
      modifying,
      notifiesOfNetworks: () => networks.notifies(),
      onOperations: (operations) => {
        onTransaction(() => operations.map(printOperation));
      },
      failures,
    });
  };
  const dataplane = (family: Family): Reconciler<Look> => {
    const driver = driverOf(family);
    const reconciler = new Reconciler(driver, now);
    made.set(family, { family, stirred: () => driver.stirred(() => reconciler.quiet()) });
    return reconciler;
  };
  return {
    families: served,
    dataplane,
    own: { footprint: NO_FOOTPRINT, flavor: null },
    remove: (family) => driverOf(family).remove(),
    watch: networks.watch,
    modeCounts: () => Promise.resolve(failures.read()),
    attempts: null,
  };
}

interface Lacks {
  readonly families: readonly Family[];
  readonly served: readonly Family[];
  readonly features: HcnFeatures;
  readonly release: string;
}

function warnOfLacks(log: Log, { families, served, features, release }: Lacks): void {
  for (const family of families)
    if (!served.includes(family)) log.warn(`HNS ${release} has no dual stack, ${family} is not served`);
  if (!features.sessionAffinity) log.warn(`HNS ${release} has no session affinity: Services that ask for it get none`);
}

/** Behaviour WK-02. */
function servedFamilies(families: readonly Family[], { ipv6DualStack }: HcnFeatures): readonly Family[] {
  return ipv6DualStack ? families : families.slice(0, 1);
}

/** Behaviour WK-01, WK-03. */
function requireFeatures(
  { networkName, network, enableDSR }: KernelspaceConfig,
  { v2, dsr }: HcnFeatures,
  version: string,
): void {
  if (networkName === '')
    throw new ModeError(
      'winkernel.networkName: Required value: the name of the HNS network, here or in the environment variable KUBE_NETWORK',
    );
  if (network === null)
    throw new ModeError(`KUBE_NETWORK: Invalid value: "${networkName}": is no name of an HNS network`);
  if (!v2) throw new ModeError(`mode kernelspace needs HNS 9.2 or later, and this host has ${version}`);
  if (enableDSR && !dsr) throw new ModeError(`winkernel.enableDSR: HNS ${version} has no direct server return`);
}

export function familyOptions(
  settings: KernelspaceConfig,
  features: HcnFeatures,
  family: Family,
  served: readonly Family[],
): FamilySettings {
  const { network, sourceVip, sourceVipEndpoint, enableDSR, rootHnsEndpointName, forwardHealthCheckVip, healthzPort } =
    settings;
  // Without one the mode is not opened.
  if (network === null) throw new TypeError('winkernel.networkName: none');
  return {
    family,
    network,
    sourceVipEndpoint,
    enableDSR,
    features,
    healthzPort,
    sourceVip: sourceVipOf(family, sourceVip),
    servesOverlay: family === served[0],
    healthCheckEndpoint: forwardHealthCheckVip ? rootHnsEndpointName : null,
  };
}

export function render({ config }: Pick<ModeParts, 'config'>, tables: readonly FamilyTable[]): Promise<string> {
  const settings = settingsOf(config);
  return renderTables(tables, settings, (family, features) =>
    familyOptions(settings, features, family, ['IPv4', 'IPv6']),
  );
}
