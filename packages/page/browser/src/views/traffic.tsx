import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { PortTraffic, Refused, ServiceDetail, Traffic } from '../../../../../src/serve/service-answers.js';
import { bytes, number } from '../format.js';
import { Section, Table } from '../parts.js';

const REFRESH_MS = 5000;

/** A number that changes periodically while traffic is counted: the server does not notify the page of new traffic. */
export function useTrafficVersion(counted: boolean): number {
  const [version, setVersion] = useState(0);
  useEffect(() => {
    if (!counted) return undefined;
    const timer = setInterval(() => {
      setVersion((before) => before + 1);
    }, REFRESH_MS);
    return () => {
      clearInterval(timer);
    };
  }, [counted]);
  return version;
}

/** What went through a Service on this node. */
export function TrafficSection({ of: { ports, traffic } }: { readonly of: ServiceDetail }): JSX.Element | null {
  if (traffic === null) return null;
  if (traffic.length === 0)
    return (
      <Section title="Traffic" note="on this node, since counting began">
        <p class="quiet">
          Nothing has gone through {ports.length === 1 ? 'its port' : 'any of its ports'}, or it has no counters of its
          own.
        </p>
      </Section>
    );
  return (
    <Section title="Traffic" note="on this node, since counting began">
      <Table
        label="Traffic"
        columns={['Port', '#Connections', '#Packets to endpoints', '#Bytes', '#Packets back', '#Bytes back']}
      >
        {traffic.map((port) => (
          <PortRows key={portName(port)} of={port} />
        ))}
      </Table>
      <RefusedTable of={traffic} />
    </Section>
  );
}

const REASONS: Readonly<Record<Refused['reason'], string>> = {
  'no-endpoints': 'no endpoint to use',
  'no-local-endpoints': 'policy Local, and no endpoint on this node',
  'source-range': 'source in none of the ranges',
};

/** What did not go through it, if there is any. */
function RefusedTable({ of }: { readonly of: readonly PortTraffic[] }): JSX.Element | null {
  const rows = of.flatMap((port) => port.refused.map((each) => ({ ...each, port })));
  if (rows.length === 0) return null;
  return (
    <Table label="Refused and dropped" columns={['Port', 'Refused or dropped', 'Why', '#Packets']}>
      {rows.map(({ port, verdict, reason, packets }) => (
        <tr key={`${portName(port)} ${verdict} ${reason}`}>
          <th scope="row">
            <code>{portName(port)}</code>
          </th>
          <td>{verdict}</td>
          <td>{REASONS[reason]}</td>
          <td class="number">{number(packets)}</td>
        </tr>
      ))}
    </Table>
  );
}

function portName({ port, protocol }: PortTraffic): string {
  return port === '' ? protocol : `${port}/${protocol}`;
}

function PortRows({ of }: { readonly of: PortTraffic }): JSX.Element {
  return (
    <>
      <tr>
        <th scope="row">
          <code>{portName(of)}</code>
        </th>
        <Numbers of={of} />
      </tr>
      {of.endpoints.map((each) => (
        <tr key={each.endpoint}>
          <td>
            {each.endpoint === '_other' ? (
              <span class="quiet">to other endpoints</span>
            ) : (
              <>
                <span class="quiet">to</span> <code>{each.endpoint}</code>
              </>
            )}
          </td>
          <Numbers of={each} />
        </tr>
      ))}
    </>
  );
}

function Numbers({ of }: { readonly of: Traffic }): JSX.Element {
  return (
    <>
      <td class="number">{number(of.connections)}</td>
      <td class="number">{number(of.requestPackets)}</td>
      <td class="number">{bytes(of.requestBytes)}</td>
      <td class="number">{number(of.replyPackets)}</td>
      <td class="number">{bytes(of.replyBytes)}</td>
    </>
  );
}
