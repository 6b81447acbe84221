import t from 'tap';
import { gateStates, isGateEnabled } from '../../src/config/gates.js';

function states(settings: Readonly<Record<string, boolean>>): Readonly<Record<string, string>> {
  return Object.fromEntries(gateStates(settings).map(({ name, stage, enabled }) => [name, `${stage} ${enabled}`]));
}

t.test('every gate and stage with its state', (t) => {
  const defaults = states({});
  t.match(defaults, {
    AllAlpha: 'ALPHA false',
    AllBeta: 'BETA false',
    AllowServiceExternalIPs: ' true',
    NFTablesProxyMode: ' true',
    ComponentStatusz: 'BETA true',
    ClientsAllowCBOR: 'ALPHA false',
  });
  t.equal(new Set(Object.keys(defaults)).size, gateStates({}).length);
  t.same(states({ AllBeta: false, WatchListClient: true, AllowServiceExternalIPs: false, Unknown: true }), {
    ...defaults,
    ComponentFlagz: 'BETA false',
    ComponentStatusz: 'BETA false',
    ContextualLogging: 'BETA false',
    LoggingBetaOptions: 'BETA false',
    AllowServiceExternalIPs: ' false',
  });
  t.equal(states({ AllAlpha: true })['NativeHistograms'], 'ALPHA true');
  t.end();
});

t.test('a gate that is asked for says the same', (t) => {
  for (const settings of [{}, { AllBeta: false }, { AllBeta: false, ComponentFlagz: true }, { ComponentFlagz: false }])
    for (const { name, enabled } of gateStates(settings))
      if (name === 'ComponentFlagz' || name === 'AllowServiceExternalIPs')
        t.equal(isGateEnabled(name, settings), enabled, `${name} ${JSON.stringify(settings)}`);
  t.end();
});
