import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { NodeRow, NodesReport, NodeState, ServiceAcross } from '../../../../nodes/src/api.js';
import { askAt, messageOf } from '../ask.js';
import { clockTime, counted, number } from '../format.js';
import { Dot, Section, State, Table, Trouble, type Tone } from '../parts.js';
import { Brand, ThemeSwitch } from '../shell.js';

/** How long after an answer it is asked again. */
const EVERY_MS = 5000;
/** As many of each are shown; the search finds the others. */
const SHOWN = 200;

const STATES: Readonly<Record<NodeState, readonly [words: string, tone: Tone]>> = {
  'no-proxy': ['no proxy', 'bad'],
  'no-answer': ['no answer', 'bad'],
  unhealthy: ['not healthy', 'bad'],
  differs: ['differs', 'bad'],
  lags: ['lags', 'warn'],
  'in-step': ['in step', 'good'],
};
const PROBLEMS: Readonly<Record<ServiceAcross['problem'], string>> = {
  unplanned: 'cannot be planned',
  quarantined: 'quarantined',
  conflict: 'in conflict',
};

interface FetchedReport {
  /** Null: nothing has come yet. */
  readonly report: NodesReport | null;
  readonly error: string | null;
}

/** All nodes of a cluster, the worst first, and what is wrong with Services where. */
export function NodesPage(): JSX.Element {
  const { report, error } = useReport();
  const [text, setText] = useSearched();
  const services = (report?.services ?? []).filter((each) => fits(text, [each.service, ...each.nodes]));
  /** Nodes of a Service that is searched for. */
  const having = new Set(services.filter(({ service }) => text !== '' && fits(text, [service])).flatMap(nodesOf));
  return (
    <div class="shell">
      <header class="bar">
        <Brand node="all nodes" href="./" />
        <div class="bar-end">
          <span class="connection">
            <Dot tone={error === null ? 'good' : 'warn'} />
            {report === null ? 'Asking…' : `As of ${clockTime(report.at)}`}
          </span>
          <ThemeSwitch />
        </div>
      </header>
      <main class="content" id="content">
        <div class="page-head">
          <h1>Nodes</h1>
          <p>{report === null ? 'Asking all proxies…' : summary(report)}</p>
        </div>
        {error !== null && <Trouble>{error}</Trouble>}
        {report !== null && (
          <>
            <div class="search" role="search">
              <input
                id="search"
                type="search"
                aria-label="Search nodes and Services"
                placeholder="Name of a node or a Service"
                value={text}
                onInput={(event) => {
                  setText(event.currentTarget.value);
                }}
              />
            </div>
            <Services services={services} />
            <Nodes nodes={report.nodes.filter(({ node, pod }) => having.has(node) || fits(text, [node, pod ?? '']))} />
          </>
        )}
      </main>
      <div class="unseen" role="status">
        {report === null ? '' : summary(report)}
      </div>
    </div>
  );
}

function nodesOf({ nodes }: ServiceAcross): readonly string[] {
  return nodes;
}

/** What is searched for, which is the part of the address after `#`: a link to a name searches for it. */
function useSearched(): readonly [string, (text: string) => void] {
  const [text, setText] = useState(searched);
  useEffect(() => {
    const changed = (): void => {
      setText(searched());
    };
    addEventListener('hashchange', changed);
    return () => {
      removeEventListener('hashchange', changed);
    };
  }, []);
  const search = (wanted: string): void => {
    history.replaceState(null, '', `#${encodeURIComponent(wanted)}`);
    setText(wanted);
  };
  return [text, search];
}

function searched(): string {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return '';
  }
}

/** Shows what there is of a node and its Services, or of a Service and its nodes. */
function Name({ of }: { readonly of: string }): JSX.Element {
  return <a href={`#${encodeURIComponent(of)}`}>{of}</a>;
}

function useReport(): FetchedReport {
  const [reported, setFetched] = useState<FetchedReport>({ report: null, error: null });
  useEffect(() => {
    const stop = new AbortController();
    let timer = 0;
    const look = async (): Promise<void> => {
      try {
        const report = (await askAt('api/nodes', stop.signal)) as NodesReport;
        setFetched({ report, error: null });
      } catch (error) {
        if (stop.signal.aborted) return;
        setFetched(({ report }) => ({ report, error: messageOf(error) }));
      }
      timer = setTimeout(() => void look(), EVERY_MS);
    };
    void look();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, []);
  return reported;
}

function summary({ nodes, counts }: NodesReport): string {
  const parts = (Object.keys(STATES) as NodeState[])
    .filter((state) => counts[state] > 0)
    .map((state) => `${number(counts[state])} ${STATES[state][0]}`);
  return `${counted(nodes.length, 'node')}${parts.length === 0 ? '' : `: ${parts.reverse().join(', ')}`}`;
}

function fits(text: string, names: readonly string[]): boolean {
  const wanted = text.trim().toLowerCase();
  return names.some((name) => name.toLowerCase().includes(wanted));
}

function Nodes({ nodes }: { readonly nodes: readonly NodeRow[] }): JSX.Element {
  return (
    <Section title="Nodes" note="the worst first">
      <Table label="Nodes" columns={['Node', 'State', 'Why', 'Mode', '#Services', 'Release']}>
        {nodes.slice(0, SHOWN).map((row) => (
          <tr key={row.node}>
            <td class="name beside-wide">
              <Name of={row.node} />
            </td>
            <td>
              <State tone={STATES[row.state][1]}>{STATES[row.state][0]}</State>
            </td>
            <td class="wide what">
              <Why row={row} />
            </td>
            <td>{row.proxy?.mode}</td>
            <td class="number">{row.proxy === null ? '' : number(row.proxy.services)}</td>
            <td>{row.proxy?.release}</td>
          </tr>
        ))}
      </Table>
      <More count={nodes.length - SHOWN} noun="node" />
    </Section>
  );
}

function Why({ row: { why, healthCheck, differences, moreDifferences } }: { readonly row: NodeRow }): JSX.Element {
  const shown = differences.slice(0, 5);
  return (
    <ul class="texts">
      {why.map((text) => (
        <li key={text}>{text}</li>
      ))}
      {healthCheck !== null && <li>its health check {healthCheck ? 'passes' : 'fails'}</li>}
      {shown.map(({ resource, object, held, actual }) => (
        <li key={`${resource} ${object}`}>
          {resource} <code>{object}</code>: {held ?? 'not there'}, and {actual ?? 'nothing'} in the API server
        </li>
      ))}
      {(differences.length > shown.length || moreDifferences) && <li>and more</li>}
    </ul>
  );
}

function Services({ services }: { readonly services: readonly ServiceAcross[] }): JSX.Element | null {
  if (services.length === 0) return null;
  return (
    <Section title="Services" note="with problems, on the most nodes first">
      <Table label="Services" columns={['Service', 'Problem', 'What', '#Nodes', 'Which']}>
        {services.slice(0, SHOWN).map(({ service, problem, text, nodes }) => (
          <tr key={`${service} ${problem} ${text}`}>
            <td class="name beside-wide">
              <Name of={service} />
            </td>
            <td class="whole">{PROBLEMS[problem]}</td>
            <td class="wide what">{text}</td>
            <td class="number">{number(nodes.length)}</td>
            <td class="name beside-wide">
              {nodes.slice(0, 5).map((node, index) => (
                <span key={node}>
                  {index > 0 && ', '}
                  <Name of={node} />
                </span>
              ))}
              {nodes.length > 5 && ' …'}
            </td>
          </tr>
        ))}
      </Table>
      <More count={services.length - SHOWN} noun="Service" />
    </Section>
  );
}

function More({ count, noun }: { readonly count: number; readonly noun: string }): JSX.Element | null {
  return count > 0 ? <p class="quiet">and {counted(count, noun)} more: search for them</p> : null;
}
