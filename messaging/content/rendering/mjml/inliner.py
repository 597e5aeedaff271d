"""The CSS inliner, in a process of its own, since the cost of a selector is not known in advance.

`*:not(a ~ b)` takes quadratic time in the elements, for each rule. Native code can neither be
bounded nor interrupted in a thread of the web server, all of which it would block.
"""

import json
import resource
import subprocess
import sys

CPU_SECONDS = 3
WALL_SECONDS = 30
"""For a busy machine."""


class InlineFailed(Exception):
    """The inliner failed or was stopped; the text says why."""


def inlined(html: str, css: str) -> str:
    """Return a document with CSS in its style attributes. Raises InlineFailed."""
    given = json.dumps([html, css]).encode()
    try:
        done = subprocess.run(  # by its path and isolated (-I): it imports nothing of this project
            [sys.executable, "-I", __file__],
            input=given,
            capture_output=True,
            timeout=WALL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise InlineFailed("the CSS takes too long to be put inline") from None
    if done.returncode < 0:
        raise InlineFailed("the CSS takes too long to be put inline")
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise InlineFailed(f"the CSS cannot be put inline: {last[:200]}")
    text: str = json.loads(done.stdout)
    return text


def main() -> None:
    """Read a document and CSS as JSON from standard input; write the styled document."""
    from css_inline import CSSInliner  # native code that only this subprocess loads

    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    html, css = json.load(sys.stdin)
    inliner = CSSInliner(
        inline_style_tags=False,
        keep_style_tags=True,
        keep_link_tags=True,
        load_remote_stylesheets=False,
        extra_css=css,
    )
    json.dump(inliner.inline(html), sys.stdout)


if __name__ == "__main__":
    main()
