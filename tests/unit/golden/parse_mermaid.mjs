// Diagrams as JSON on stdin; what Mermaid's own parser reads from each, as JSON on stdout.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { join } from "node:path";
import { readFileSync } from "node:fs";

const require = createRequire(join(process.argv[2], "package.json"));
const { JSDOM } = require("jsdom");
const { window } = new JSDOM("<body></body>");
globalThis.window = window;
globalThis.document = window.document;
const mermaidFile = join(process.argv[2], "node_modules", "mermaid", "dist", "mermaid.core.mjs");
const mermaid = (await import(pathToFileURL(mermaidFile))).default;
mermaid.initialize({ startOnLoad: false });

// Mermaid keeps entities encoded until it draws.
const decoded = (label) =>
  label
    .replace(/ﬂ°°(\d+)¶ß/g, (_, code) => String.fromCodePoint(Number(code)))
    .replace(/ﬂ°(\w+)¶ß/g, (_, name) => ({ quot: '"', lt: "<", gt: ">", amp: "&" })[name]);

const answers = [];
for (const text of JSON.parse(readFileSync(0, "utf8"))) {
  try {
    const { db } = await mermaid.mermaidAPI.getDiagramFromText(text);
    const labels = {};
    for (const [id, vertex] of db.getVertices()) labels[id] = decoded(vertex.text);
    answers.push({ labels, edges: db.getEdges().map((edge) => [edge.start, edge.end]) });
  } catch (error) {
    answers.push({ error: String(error) });
  }
}
process.stdout.write(JSON.stringify(answers));
