import { createSocket } from 'node:dgram';

/** Sends one, of one byte; nobody need listen. */
export async function sendDatagram(address: string, port: number): Promise<void> {
  const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4');
  await new Promise<void>((resolve, reject) => {
    socket.send('x', port, address, (error) => {
      if (error) reject(error);
      else resolve();
    });
  });
  socket.close();
}
