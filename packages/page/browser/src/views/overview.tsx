import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type {
  Activity,
  FamilyOverview,
  HealthReason,
  History,
  Overview,
  ProblemCount,
  SourceOverview,
  TriageAnswer,
} from '../../../src/api.js';
import { useAnswer } from '../ask.js';
import { bytes, counted, duration, milliseconds, number, rate } from '../format.js';
import { Graphs } from '../graphs.js';
import { quantile, together } from '../latency.js';
import { identity, type LiveState } from '../live.js';
import { Age, Clock, Dot, Facts, Section, State, Table, type Tone } from '../parts.js';
import { PROBLEM_TEXTS } from '../problems.js';
import { printRoute } from '../route.js';

/** How often what changes without an event is asked for. */
const REFRESH_MS = 5000;

/** What is wrong, by kind; then what the node does. */
export function OverviewView({ state: { overview, history, connection } }: { readonly state: LiveState }): JSX.Element {
  const version = useTicks(REFRESH_MS);
  const { answer: triage } = useAnswer('api/triage', {}, version);
  if (overview === null)
    return (
      <>
        <h1 class="unseen">Overview</h1>
        <p class="quiet">Asking the process…</p>
      </>
    );
  return (
    <>
      <Verdict overview={overview} isLost={connection === 'lost'} />
      <Wrong reasons={overview.health.reasons} triage={triage} />
      <Figures overview={overview} history={history} />
      {triage !== null && <Graphs of={triage.activity} />}
      <div class="columns">
        <Changes history={history} />
        <Repairs history={history} />
        {triage !== null && <Busiest of={triage.activity} />}
      </div>
      <Families families={overview.families} />
      <Sources sources={overview.sources} />
      <Process overview={overview} />
    </>
  );
}

/** A number that grows at this interval. */
function useTicks(ms: number): number {
  const [ticks, setTicks] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => {
      setTicks((before) => before + 1);
    }, ms);
    return () => {
      clearInterval(timer);
    };
  }, [ms]);
  return ticks;
}

interface VerdictProperties {
  readonly overview: Overview;
  /** The process cannot be reached: what is shown was so. */
  readonly isLost: boolean;
}

function Verdict({ overview: { health, startedAt, at }, isLost }: VerdictProperties): JSX.Element {
  const { healthy, nodeEligible, reasons } = health;
  const tone = isLost ? 'none' : !healthy ? 'bad' : nodeEligible === true ? 'good' : 'warn';
  const worst = reasons.find(({ severity }) => severity === 'bad');
  const since = healthy ? startedAt : (worst?.since ?? null);
  const verdict = healthy ? 'Healthy' : 'Not healthy';
  return (
    <div class="page-head verdict">
      <Dot tone={tone} />
      <h1>{isLost ? 'Not reachable' : verdict}</h1>
      <p>
        {isLost ? (
          <>
            The state of this node is unknown. Last seen at <Clock at={at} />: {verdict.toLowerCase()}.
          </>
        ) : (
          <>
            {healthy ? 'The rules are in step with the cluster.' : 'The rules are not in step with the cluster.'}{' '}
            {eligible(nodeEligible)}
            {!healthy && since !== null && (
              <>
                {' '}
                Since <Clock at={since} />.
              </>
            )}
          </>
        )}
      </p>
    </div>
  );
}

function eligible(nodeEligible: boolean | null): string {
  if (nodeEligible === true) return 'In rotation for load balancers.';
  return nodeEligible === null
    ? 'Out of rotation for load balancers: the Node is not known.'
    : 'Out of rotation for load balancers: the node is leaving.';
}

/** Problems of Services that are among the reasons of health already. */
const IN_REASONS: readonly string[] = ['quarantined', 'unplanned', 'conflict'];

function Wrong({
  reasons,
  triage,
}: {
  readonly reasons: readonly HealthReason[];
  readonly triage: TriageAnswer | null;
}): JSX.Element {
  const problems = (triage?.problems ?? []).filter(({ problem }) => !IN_REASONS.includes(problem));
  const observations = triage?.observations ?? [];
  const count = reasons.length + problems.length + observations.length;
  return (
    <Section title="What is wrong">
      {count > 0 ? (
        <ul class="items" aria-label="What is wrong">
          {reasons.map((reason) => (
            <Reason key={`${reason.kind} ${reason.family ?? ''} ${reason.text}`} reason={reason} />
          ))}
          {observations.map(({ severity, text, remedy }) => (
            <Item key={text} tone={severity === 'warning' ? 'bad' : 'none'} aloud={severity}>
              {text}
              <span class="quiet remedy">Remedy: {remedy}</span>
            </Item>
          ))}
          {problems.map((each) => (
            <ProblemItem key={each.problem} of={each} />
          ))}
        </ul>
      ) : (
        <p class="quiet">{triage === null ? 'Asking the process…' : 'Nothing.'}</p>
      )}
    </Section>
  );
}

interface ItemProperties {
  readonly tone: Tone;
  /** What the tone says, for a screen reader. */
  readonly aloud: string;
  readonly since?: string | null;
  readonly children: ComponentChildren;
}

function Item({ tone, aloud, since = null, children }: ItemProperties): JSX.Element {
  return (
    <li class="reason">
      <Dot tone={tone} />
      <p>
        <span class="unseen">{aloud}: </span>
        {children}
      </p>
      <span class="quiet number">
        {since !== null && (
          <>
            for <Age at={since} suffix="" />
          </>
        )}
      </span>
    </li>
  );
}

/** Where more is to be seen of a reason. */
const MORE: Partial<Record<HealthReason['kind'], readonly [text: string, href: string]>> = {
  quarantined: ['Show the Services', printRoute({ view: 'services', parameters: { problems: 'quarantined' } })],
  unplanned: ['Show the Services', printRoute({ view: 'services', parameters: { problems: 'unplanned' } })],
  conflict: ['Show the Services', printRoute({ view: 'services', parameters: { problems: 'conflict' } })],
  failing: ['Show the syncs', printRoute({ view: 'history' })],
  drift: ['Show the repairs', printRoute({ view: 'history' })],
  configuration: ['Show the configuration', printRoute({ view: 'configuration' })],
};

function Reason({ reason: { severity, kind, family, text, since } }: { readonly reason: HealthReason }): JSX.Element {
  const [label, href] = MORE[kind] ?? [];
  return (
    <Item tone={severity === 'bad' ? 'bad' : 'warn'} aloud={severity === 'bad' ? 'Bad' : 'Warning'} since={since}>
      {family !== null && <span class="tag">{family}</span>} {text} {href !== undefined && <a href={href}>{label}</a>}
    </Item>
  );
}

function ProblemItem({ of: { problem, count, examples } }: { readonly of: ProblemCount }): JSX.Element {
  return (
    <Item tone="warn" aloud="Warning">
      <a href={printRoute({ view: 'services', parameters: { problems: problem } })}>{counted(count, 'Service')}</a>{' '}
      {PROBLEM_TEXTS[problem]}:{' '}
      {examples.map((key, index) => (
        <span key={key}>
          {index > 0 && ', '}
          <ServiceLink of={key} />
        </span>
      ))}
      {count > examples.length && ' …'}
    </Item>
  );
}

const SHOWN = 5;

function Changes({ history }: { readonly history: History | null }): JSX.Element {
  const syncs = (history?.syncs ?? []).filter(({ frontends }) => frontends > 0).slice(0, SHOWN);
  return (
    <Section title="Last changes" note={<a href={printRoute({ view: 'history' })}>All</a>}>
      {syncs.length === 0 && <p class="quiet">None yet.</p>}
      <ul class="items">
        {syncs.map((sync) => (
          <li key={identity(sync)}>
            <p>
              <Clock at={sync.endedAt} /> <span class="tag">{sync.family}</span>{' '}
              {sync.servicePorts.map((servicePort, index) => (
                <span key={servicePort}>
                  {index > 0 && ', '}
                  <ServiceLink of={servicePort.split(':')[0] ?? ''}>{servicePort}</ServiceLink>
                </span>
              ))}{' '}
              <span class="quiet">
                {counted(sync.frontends, 'frontend')} in {milliseconds(sync.syncMs)}
              </span>
            </p>
          </li>
        ))}
      </ul>
    </Section>
  );
}

function Repairs({ history }: { readonly history: History | null }): JSX.Element {
  const repairs = history?.repairs.slice(0, SHOWN) ?? [];
  return (
    <Section title="Last repairs" note={<a href={printRoute({ view: 'history' })}>All</a>}>
      {repairs.length === 0 && <p class="quiet">None: no other process has changed the rules.</p>}
      <ul class="items">
        {repairs.map((repair) => (
          <li key={identity(repair)}>
            <p>
              <Clock at={repair.at} /> <span class="tag">{repair.family}</span>{' '}
              {repair.process === null ? (
                'after an unknown process'
              ) : (
                <>
                  after <code>{repair.process}</code>
                </>
              )}{' '}
              <span class="quiet">
                {counted(repair.differences, 'difference')}
                {repair.seconds === null ? '' : `, repaired in ${milliseconds(repair.seconds * 1000)}`}
              </span>
            </p>
          </li>
        ))}
      </ul>
    </Section>
  );
}

function Busiest({ of: { busiest } }: { readonly of: Activity }): JSX.Element {
  return (
    <Section title="Busiest Services" note="per second">
      {busiest === null || busiest.length === 0 ? (
        <p class="quiet">
          {busiest === null ? 'Traffic is not counted: see --service-telemetry.' : 'No traffic in the last seconds.'}
        </p>
      ) : (
        <Table label="Busiest Services" columns={['Service', '#Connections', '#Bytes', '#Refused']}>
          {busiest.map(({ key, connections, bytes: sent, refused }) => (
            <tr key={key}>
              <th scope="row">{key === '_other' ? 'all others' : <ServiceLink of={key} />}</th>
              <td class="number">{rate(connections)}</td>
              <td class="number">{bytes(Math.round(sent))}</td>
              <td class={`number ${refused > 0 ? 'warn-text' : ''}`}>{rate(refused)}</td>
            </tr>
          ))}
        </Table>
      )}
    </Section>
  );
}

function ServiceLink({
  of,
  children = of,
}: {
  readonly of: string;
  readonly children?: ComponentChildren;
}): JSX.Element {
  return (
    <a class="name" href={printRoute({ view: 'services', item: of })}>
      {children}
    </a>
  );
}

function Figures({
  overview,
  history,
}: {
  readonly overview: Overview;
  readonly history: History | null;
}): JSX.Element {
  const { families, services, memory, startedAt } = overview;
  const sum = (of: (family: FamilyOverview) => number): string =>
    number(families.reduce((total, each) => total + of(each), 0));
  const median = quantile(together(history?.latency.filter(({ kind }) => kind === 'change') ?? []), 0.5);
  return (
    <Facts
      look="figures"
      of={[
        ['Services', number(services)],
        ['Frontends', sum(({ frontends }) => frontends)],
        ['Endpoints', sum(({ endpoints }) => endpoints)],
        ['Change to kernel, median', median],
        ['Repairs', sum(({ repairs }) => repairs)],
        ['Memory', bytes(memory.residentBytes)],
        ['Running for', <Age at={startedAt} suffix="" />],
      ]}
    />
  );
}

const FAMILY_COLUMNS = [
  'Family',
  'State',
  '#Services',
  '#Frontends',
  '#Endpoints',
  '#Pending',
  '#Quarantined',
  '#Conflicts',
  '#Unplanned',
  '#Syncs',
  '#Failed',
  '#Repairs',
  'Last sync',
];

function Families({ families }: { readonly families: readonly FamilyOverview[] }): JSX.Element {
  return (
    <Section title="Address families">
      <Table label="Address families" columns={FAMILY_COLUMNS}>
        {families.map((family) => (
          <Family key={family.family} of={family} />
        ))}
      </Table>
    </Section>
  );
}

function Family({ of: family }: { readonly of: FamilyOverview }): JSX.Element {
  const { pendingFrontends, pendingMs, syncedAt } = family;
  const troubles = [family.quarantined, family.conflicts, family.unplanned];
  return (
    <tr>
      <th scope="row">{family.family}</th>
      <td>
        <State tone={family.healthy ? 'good' : 'bad'}>{family.healthy ? 'in sync' : 'not in sync'}</State>
      </td>
      <td class="number">{number(family.services)}</td>
      <td class="number">{number(family.frontends)}</td>
      <td class="number">{number(family.endpoints)}</td>
      <td class="number">
        {number(pendingFrontends)}
        {pendingMs !== null && <span class="quiet"> for {duration(pendingMs / 1000)}</span>}
      </td>
      {troubles.map((count, index) => (
        <Faults key={index} count={count} />
      ))}
      <td class="number">{number(family.syncs)}</td>
      <Faults count={family.failures} />
      <td class="number">{number(family.repairs)}</td>
      <td>{syncedAt === null ? 'never' : <Age at={syncedAt} />}</td>
    </tr>
  );
}

/** Nothing is what it should be. */
function Faults({ count }: { readonly count: number }): JSX.Element {
  return <td class={`number ${count > 0 ? 'warn-text' : ''}`}>{number(count)}</td>;
}

function Sources({ sources }: { readonly sources: readonly SourceOverview[] }): JSX.Element {
  return (
    <Section title="Sources" note="where Services and endpoints come from">
      <Table label="Sources" columns={['Source', 'State', 'Last event', 'Failures since the start']}>
        {sources.map(({ source, synced, lastEventAt, failures }) => (
          <tr key={source}>
            <th scope="row" class="name">
              {source}
            </th>
            <td>
              <State tone={synced ? 'good' : 'warn'}>{synced ? 'read' : 'not read yet'}</State>
            </td>
            <td>{lastEventAt === null ? 'never' : <Age at={lastEventAt} />}</td>
            <td>
              {failures.length === 0 ? (
                <span class="quiet">none</span>
              ) : (
                failures.map(({ kind, count }) => `${number(count)} × ${kind}`).join(', ')
              )}
            </td>
          </tr>
        ))}
      </Table>
    </Section>
  );
}

function Process({ overview }: { readonly overview: Overview }): JSX.Element {
  const { release, version, mode, node, pid, startedAt, memory } = overview;
  return (
    <Section title="Process">
      <div class="columns">
        <Facts
          of={[
            ['Node', <span class="name">{node}</span>],
            ['Mode', mode],
            ['Started', <Clock at={startedAt} />],
            ['Process', <code>{pid}</code>],
          ]}
        />
        <Facts
          of={[
            ['Release', release],
            ['Behaves as kube-proxy', version],
            ['Memory, resident', bytes(memory.residentBytes)],
            ['Heap / external', `${bytes(memory.heapBytes)} / ${bytes(memory.externalBytes)}`],
          ]}
        />
      </div>
    </Section>
  );
}
