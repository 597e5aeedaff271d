// Builds what the console's pages load into messaging/static/console. Beside each build stands the
// digest of its sources, by which a test finds a stale one without node.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";

const OUT = "../messaging/static/console";
const own = ["package-lock.json", "build.mjs"];
const sources = readdirSync("studio").sort().map((name) => `studio/${name}`);

await build({
  entryPoints: { studio: "studio/main.js", compare: "studio/compare.js" },
  outdir: OUT,
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  legalComments: "none",
  banner: { js: "/* Built by `make assets`; the licences stand in studio.licences.txt. */" },
});

const digest = createHash("sha256");
for (const name of [...own, ...sources]) digest.update(`${name}\0`).update(readFileSync(name));
writeFileSync(`${OUT}/studio.digest`, `${digest.digest("hex")}\n`);

const lock = JSON.parse(readFileSync("package-lock.json", "utf8")).packages;
const licences = [];
for (const path of Object.keys(lock).sort()) {
  if (!path || path.includes("esbuild")) continue;
  const name = path.replace("node_modules/", "");
  licences.push(`${name} ${lock[path].version}\n\n${readFileSync(`${path}/LICENSE`, "utf8").trim()}\n`);
}
writeFileSync(`${OUT}/studio.licences.txt`, licences.join(`\n${"-".repeat(80)}\n`));
