import t from 'tap';
import { parseQuestion, QuestionError } from '../../src/plan/question.js';
import { address } from '../support/rows.js';

t.test('explain accepts questions in all forms', (t) => {
  t.same(parseQuestion('external', '10.96.0.1:80/TCP'), {
    sender: { type: 'external' },
    destination: '10.96.0.1',
    port: 80,
    protocol: 'TCP',
  });
  t.match(parseQuestion('node', '[fd00::0001]:53/udp'), {
    sender: { type: 'node' },
    destination: 'fd00::1',
    port: 53,
    protocol: 'UDP',
  });
  t.equal(parseQuestion('node', '10.96.0.1:80').protocol, 'TCP', 'most of what is asked');
  const senders: readonly (readonly [string, object])[] = [
    ['10.1.2.3', { type: 'address', address: address('10.1.2.3'), interface: null }],
    ['010.1.2.3%cni0', { type: 'address', address: address('10.1.2.3'), interface: 'cni0' }],
    ['veth12ab.7', { type: 'interface', name: 'veth12ab.7' }],
    ['nodes', { type: 'interface', name: 'nodes' }],
  ];
  for (const [text, sender] of senders) t.same(parseQuestion(text, '10.96.0.1:80').sender, sender, text);
  t.same(parseQuestion('[fd00::2]', '[fd00::1]:1').sender, { type: 'address', address: 'fd00::2', interface: null });
  t.same(parseQuestion('fd00::2%eth0', '[fd00::1]:1').sender, {
    type: 'address',
    address: 'fd00::2',
    interface: 'eth0',
  });
  t.end();
});

t.test('explain refuses malformed questions', (t) => {
  const rows: readonly (readonly [string, string, RegExp])[] = [
    ['external', '', /^destination "": must be address:port\/protocol, with IPv6 in brackets$/],
    ['external', '10.96.0.1', /must be address:port/],
    ['external', 'fd00::1:80', /must be address:port/],
    ['external', '[10.96.0.1]:80', /must be address:port/],
    ['external', '10.96.0.256:80', /^destination "10.96.0.256:80": "10.96.0.256" is no IP address$/],
    ['external', 'web.default:80', /"web.default" is no IP address/],
    ['external', '[fd00:::1]:80', /"fd00:::1" is no IP address/],
    ['external', '10.96.0.1:0', /the port must be 1 to 65535/],
    ['external', '10.96.0.1:65536/TCP', /the port must be 1 to 65535/],
    ['external', '10.96.0.1:80/ICMP', /the protocol must be TCP, UDP or SCTP/],
    [
      '10.0.0.256',
      '10.96.0.1:80',
      /^--from: "10.0.0.256" must be external, node, an IP address, a pod among the endpoints/,
    ],
    ['', '10.96.0.1:80', /^--from: "" must be/],
    ['fd00::', '10.96.0.1:80', /the addresses are of different families/],
    ['10.0.0.1%', '10.96.0.1:80', /^--from: "10.0.0.1%" must be/],
    ['fd00:::', '10.96.0.1:80', /^--from: "fd00:::" must be/],
    ['a-name-longer-than-an-interface', '10.96.0.1:80', /must be external, node/],
    ['eth 0', '10.96.0.1:80', /must be external, node/],
  ];
  for (const [from, to, message] of rows)
    t.throws(() => parseQuestion(from, to), { name: 'QuestionError', message }, `${from} to ${to}`);
  t.throws(() => parseQuestion('', ''), QuestionError);
  t.end();
});
