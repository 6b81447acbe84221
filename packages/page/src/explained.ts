import {
  endpointReason,
  explanationParagraphs,
  printHead,
  printSkipped,
  type Paragraph,
} from '../../../src/plan/explain-text.js';
import type { ExplainedEndpoint } from '../../../src/plan/explain.js';
import { kernelParagraphs, printExplainedPacket, type ExplainedPacket } from '../../../src/serve/explain-packet.js';
import { formatted } from '../../../src/serve/formatted.js';
import type { Endpoint, ExplainAnswer, ExplainStep } from './api.js';
import { serviceOf } from '../../../src/plan/frontend-key.js';

const MAX_ENDPOINTS = 1000;

const TITLES: Readonly<Record<string, string>> = {
  source: 'Source',
  service: 'Service',
  conflict: 'Conflict',
  ranges: 'Source ranges',
  policy: 'Policy',
  endpoints: 'Endpoints',
  masquerade: 'Masquerade',
  affinity: 'Affinity',
  note: 'Notes',
  remembered: 'Remembered',
  kernel: 'Kernel',
  quarantined: 'Quarantined',
  unanswered: 'Unanswered attempts',
  attempts: 'Connection attempts',
  pending: 'Pending',
  'in the way': 'In the way',
};

/** The answer of `pointsman explain`, step by step. */
export function explainAnswer(from: string, to: string, answer: ExplainedPacket): ExplainAnswer {
  const paragraphs = [...explanationParagraphs(answer), ...kernelParagraphs(answer)];
  return {
    from,
    to,
    outcome: answer.verdict.type,
    service: answer.frontend === null ? null : serviceOf(answer.frontend.servicePort),
    headline: printHead(answer),
    steps: paragraphs
      .filter(({ lines }) => lines.length > 0)
      .map((paragraph) => (paragraph.subject === 'endpoints' ? endpointsStep(answer) : step(answer, paragraph))),
    text: formatted(answer, 'text', printExplainedPacket),
  };
}

function step(answer: ExplainedPacket, { subject, lines }: Paragraph): ExplainStep {
  const title = TITLES[subject] ?? subject;
  return { id: subject, title, outcome: outcomeOf(answer, subject), lines, endpoints: [], moreEndpoints: 0 };
}

function endpointsStep(answer: ExplainedPacket): ExplainStep {
  const { endpoints, skippedSlices } = answer;
  const used = endpoints.filter(({ excluded }) => excluded === null).length;
  return {
    ...step(answer, {
      subject: 'endpoints',
      lines: [`${used} of ${endpoints.length} are used`, ...skippedSlices.map(printSkipped)],
    }),
    endpoints: endpoints.slice(0, MAX_ENDPOINTS).map(describeEndpoint),
    moreEndpoints: Math.max(0, endpoints.length - MAX_ENDPOINTS),
  };
}

export function describeEndpoint(explained: ExplainedEndpoint): Endpoint {
  const { excluded, ...endpoint } = explained;
  return { ...endpoint, used: excluded === null, reason: endpointReason(explained) };
}

function outcomeOf({ verdict, kernel, frontend }: ExplainedPacket, subject: string): ExplainStep['outcome'] {
  const because = 'because' in verdict ? verdict.because : null;
  switch (subject) {
    case 'service':
      return frontend === null ? 'ends' : 'goes-on';
    case 'ranges':
      return because === 'source-range' ? 'ends' : 'goes-on';
    case 'endpoints':
      if (because === 'source-range') return 'info';
      return verdict.type === 'forward' ? 'goes-on' : 'ends';
    case 'kernel':
      return kernel.agrees === null ? 'info' : kernel.agrees ? 'goes-on' : 'warning';
    case 'conflict':
    case 'quarantined':
    case 'pending':
    case 'in the way':
      return 'warning';
    default:
      return 'info';
  }
}
