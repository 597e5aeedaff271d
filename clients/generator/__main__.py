"""Write the generated files, from the description on the standard input."""

import json
import sys

from clients.generator import files

for path, text in files(json.load(sys.stdin)).items():
    path.write_text(text)
