// Builds what the console's pages load into messaging/static/console and rme/theme. Beside each build stands the
// digest of its sources, by which a test finds a stale one without node.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";

const OUT = "../messaging/static/console";
const own = ["package-lock.json", "build.mjs"];
const sources = ["alpine", "studio"].flatMap((folder) => readdirSync(folder).sort().map((name) => `${folder}/${name}`));
const options = {
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  legalComments: "none",
  banner: { js: "/* Built by `make assets`; the licences stand in studio.licences.txt. */" },
};

await build({ ...options, entryPoints: { studio: "studio/main.js", compare: "studio/compare.js" }, outdir: OUT });
// It takes the place of the theme's own file.
await build({ ...options, entryPoints: ["alpine/main.js"], outfile: "../rme/theme/unfold/js/alpine/alpine.js" });

const digest = createHash("sha256");
for (const name of [...own, ...sources]) digest.update(`${name}\0`).update(readFileSync(name));
writeFileSync(`${OUT}/studio.digest`, `${digest.digest("hex")}\n`);

const lock = JSON.parse(readFileSync("package-lock.json", "utf8")).packages;
const licences = [];
for (const path of Object.keys(lock).sort()) {
  if (!path || path.includes("esbuild")) continue;
  const name = path.replace("node_modules/", "");
  // A package without the file has it in licences/.
  const licence = [`${path}/LICENSE`, `licences/${name.replace("/", "-")}.txt`].find((file) => existsSync(file));
  licences.push(`${name} ${lock[path].version}\n\n${readFileSync(licence, "utf8").trim()}\n`);
}
writeFileSync(`${OUT}/studio.licences.txt`, licences.join(`\n${"-".repeat(80)}\n`));
