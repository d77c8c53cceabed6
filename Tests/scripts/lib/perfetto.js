// Queries a trace with Perfetto's own trace processor, which runs in a worker of the browser.
//
// It takes and gives protocol buffers (perfetto/trace_processor/trace_processor.proto), of which this has the few
// messages that a trace and queries need.

class TraceProcessor {
  constructor(script) {
    this.sequence = 0;
    this.waiting = [];
    const channel = new MessageChannel();
    this.port = channel.port1;
    this.port.onmessage = (event) => this.receive(event.data);
    this.worker = new Worker(script);
    this.worker.onerror = (event) => this.waiting.forEach(({ reject }) => reject(new Error(event.message)));
    this.worker.postMessage(channel.port2, [channel.port2]);
  }

  // A number as a varint.
  static varint(number) {
    const bytes = [];
    for (; number > 127; number = Math.floor(number / 128)) bytes.push(number % 128 + 128);
    return [...bytes, number];
  }

  static number(field, value) { return [...TraceProcessor.varint(field * 8), ...TraceProcessor.varint(value)]; }

  // A field with bytes: a text or a message.
  static bytes(field, value) {
    const head = [...TraceProcessor.varint(field * 8 + 2), ...TraceProcessor.varint(value.length)];
    const all = new Uint8Array(head.length + value.length);
    all.set(head);
    all.set(value, head.length);
    return all;
  }

  // Sends TraceProcessorRpc { seq, request, arguments }; the promise has its last response.
  call(method, field, value) {
    const { number, bytes } = TraceProcessor;
    const head = [...number(1, ++this.sequence), ...number(2, method)];
    const rest = field ? bytes(field, value) : [];
    const message = new Uint8Array(head.length + rest.length);
    message.set(head);
    message.set(rest, head.length);
    return new Promise((resolve, reject) => {
      this.waiting.push({ resolve, reject, rows: [], columns: [] });
      this.port.postMessage(bytes(1, message));
    });
  }

  // The fields of a message, in their order: [number, value].
  static* fields(data) {
    const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
    let at = 0;
    const varint = () => {
      let value = 0n, shift = 0n;
      for (;;) {
        const byte = data[at++];
        value |= BigInt(byte & 127) << shift;
        if (byte < 128) return Number(BigInt.asIntN(64, value));
        shift += 7n;
      }
    };
    while (at < data.length) {
      const tag = varint();
      if ((tag & 7) === 0) {
        yield [tag >> 3, varint()];
      } else if ((tag & 7) === 1) {
        at += 8;
        yield [tag >> 3, view.getFloat64(at - 8, true)];
      } else if ((tag & 7) === 5) {
        at += 4;
        yield [tag >> 3, view.getUint32(at - 4, true)];
      } else {
        const length = varint();
        at += length;
        yield [tag >> 3, data.subarray(at - length, at)];
      }
    }
  }

  static text(data) { return new TextDecoder().decode(data); }

  // The numbers of a packed field.
  static varints(data) {
    const all = [];
    let value = 0n, shift = 0n;
    for (const byte of data) {
      value |= BigInt(byte & 127) << shift;
      shift += 7n;
      if (byte < 128) {
        all.push(Number(BigInt.asIntN(64, value)));
        value = shift = 0n;
      }
    }
    return all;
  }

  receive(data) {
    for (const [, message] of TraceProcessor.fields(data)) {
      const call = this.waiting[0];
      let isLast = true;
      for (const [field, value] of TraceProcessor.fields(message)) {
        if (field === 5) call.error = TraceProcessor.text(value);
        // AppendTraceDataResult.
        if (field === 201) for (const [n, text] of TraceProcessor.fields(value)) if (n === 2) call.error = TraceProcessor.text(text);
        if (field === 203) isLast = TraceProcessor.addRows(call, value);
      }
      if (call.error) {
        this.waiting.shift().reject(new Error(call.error));
      } else if (isLast) {
        this.waiting.shift().resolve(call.rows);
      }
    }
  }

  // QueryResult: adds its rows; returns whether they were the last ones.
  static addRows(call, result) {
    let isLast = false;
    for (const [field, value] of TraceProcessor.fields(result)) {
      if (field === 1) call.columns.push(TraceProcessor.text(value));
      if (field === 2 && value.length > 0) call.error = TraceProcessor.text(value);
      if (field !== 3) continue;
      let cells = [], integers = [], numbers = [], texts = [];
      for (const [part, content] of TraceProcessor.fields(value)) {
        if (part === 1) cells = TraceProcessor.varints(content);
        if (part === 2) integers = TraceProcessor.varints(content);
        if (part === 3) numbers = [...new Float64Array(content.slice().buffer)];
        if (part === 5) texts = TraceProcessor.text(content).split("\0");
        if (part === 6) isLast = content === 1;
      }
      // The kinds of cells: 1 null, 2 integer, 3 number, 4 text.
      const values = cells.map((kind) => [undefined, null, integers, numbers, texts][kind]?.shift() ?? null);
      for (let at = 0; at < values.length; at += call.columns.length) {
        call.rows.push(Object.fromEntries(call.columns.map((name, k) => [name, values[at + k]])));
      }
    }
    return isLast;
  }

  append(trace) { return this.call(1, 101, new TextEncoder().encode(trace)); }

  finish() { return this.call(2); }

  query(sql) { return this.call(3, 103, TraceProcessor.bytes(1, new TextEncoder().encode(sql))); }
}

// The rows of each query of a trace.
async function queryTrace(script, trace, queries) {
  const processor = new TraceProcessor(script);
  await processor.append(trace);
  await processor.finish();
  const results = [];
  for (const sql of queries) results.push(await processor.query(sql));
  return results;
}
