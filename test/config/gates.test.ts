import t from 'tap';
import { gateStates, ineffectiveGates, isGateEnabled } from '../../src/config/gates.js';

function states(settings: Readonly<Record<string, boolean>>): Readonly<Record<string, string>> {
  return Object.fromEntries(gateStates(settings).map(({ name, stage, enabled }) => [name, `${stage} ${enabled}`]));
}

t.test('feature gates have stage and state', (t) => {
  const defaults = states({});
  t.match(defaults, {
    AllAlpha: 'ALPHA false',
    AllBeta: 'BETA false',
    AllowServiceExternalIPs: ' true',
    NFTablesProxyMode: ' true',
    ComponentStatusz: 'BETA true',
    ClientsAllowCBOR: 'ALPHA false',
    KubeProxyIPVS: 'DEPRECATED true',
    KubeProxyNFTablesLocalhostNodePorts: 'ALPHA false',
    NFTablesNetlink: 'BETA true',
    NativeHistograms: 'BETA true',
  });
  t.equal(new Set(Object.keys(defaults)).size, gateStates({}).length);
  t.same(states({ AllBeta: false, WatchListClient: true, AllowServiceExternalIPs: false, Unknown: true }), {
    ...defaults,
    ComponentFlagz: 'BETA false',
    ComponentStatusz: 'BETA false',
    LoggingBetaOptions: 'BETA false',
    AllowServiceExternalIPs: ' false',
  });
  t.same(
    states({ AllAlpha: true, WatchListClient: false }),
    {
      ...defaults,
      AllAlpha: 'ALPHA true',
      KubeProxyNFTablesLocalhostNodePorts: 'ALPHA true',
      LoggingAlphaOptions: 'ALPHA true',
    },
    'gates that do not act are as they are, whatever is set',
  );
  t.end();
});

t.test('isGateEnabled() agrees with the listed gates', (t) => {
  for (const settings of [{}, { AllBeta: false }, { AllBeta: false, ComponentFlagz: true }, { ComponentFlagz: false }])
    for (const { name, enabled } of gateStates(settings))
      if (name === 'ComponentFlagz' || name === 'AllowServiceExternalIPs')
        t.equal(isGateEnabled(name, settings), enabled, `${name} ${JSON.stringify(settings)}`);
  t.end();
});

t.test('feature gates that are set and have no effect are reported', (t) => {
  t.same(
    ineffectiveGates({ AllAlpha: true, ClientsAllowCBOR: false, WatchListClient: false, NFTablesProxyMode: true }),
    ['WatchListClient=false', 'ClientsPreferCBOR=true (by AllAlpha)'],
  );
  t.same(ineffectiveGates({ AllAlpha: false, AllBeta: true }), []);
  t.end();
});
