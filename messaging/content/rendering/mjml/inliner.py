"""The CSS inliner, in a process of its own: what a selector costs nobody knows before.

`*:not(a ~ b)` takes the square of the elements, for each rule; native code can neither be bounded
nor interrupted in a thread of the web server, which it would stop altogether.
"""

import json
import resource
import subprocess
import sys

CPU_SECONDS = 3
WALL_SECONDS = 30
"""For a machine that has no time for us."""


class InlineFailed(Exception):
    """The inliner gave up, or was made to; the text says why."""


def inlined(html: str, css: str) -> str:
    """Return a document with CSS in its style attributes. Raises InlineFailed."""
    given = json.dumps([html, css]).encode()
    try:
        done = subprocess.run(  # by its path, and isolated: it needs nothing of ours
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
    """Put CSS inline: both are read from standard input as JSON, and the document is written."""
    from css_inline import CSSInliner

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
