"""The CSS inliner, in a process of its own, since the cost of a selector is not known in advance.

`*:not(a ~ b)` takes quadratic time in the elements, for each rule. Native code can neither be
bounded nor interrupted in a thread of the web server, and it would block the whole server.
"""

import json
import resource
import subprocess
import sys

CPU_SECONDS = 3
WALL_SECONDS = 30
"""For a busy machine."""
_TOO_LONG = 3
"""The exit code for a result that is too long."""


class InlineFailed(Exception):
    """The inliner failed or was stopped; the text says why."""


def inlined(html: str, css: str, limit: int) -> str:
    """Return a document with CSS in its style attributes, of at most `limit` characters.

    Raises InlineFailed.
    """
    request = json.dumps([html, css, limit]).encode()
    try:
        process = (
            subprocess.run(  # by its path and isolated (-I): it imports nothing of this project
                [sys.executable, "-I", __file__],
                input=request,
                capture_output=True,
                timeout=WALL_SECONDS,
                check=False,
            )
        )
    except subprocess.TimeoutExpired:
        raise InlineFailed("the CSS takes too long to be put inline") from None
    if process.returncode < 0:
        raise InlineFailed("the CSS takes too long to be put inline")
    if process.returncode == _TOO_LONG:
        raise InlineFailed("the CSS that is put inline makes the HTML too long")
    if process.returncode:
        last = process.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise InlineFailed(f"the CSS cannot be put inline: {last[:200]}")
    text: str = json.loads(process.stdout)
    return text


def main() -> None:
    """Read a document and CSS as JSON from standard input; write the styled document."""
    from css_inline import CSSInliner  # native code that only this subprocess loads

    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    html, css, limit = json.load(sys.stdin)
    inliner = CSSInliner(
        inline_style_tags=False,
        keep_style_tags=True,
        keep_link_tags=True,
        load_remote_stylesheets=False,
        extra_css=css,
    )
    styled = inliner.inline(html)
    if len(styled) > limit:
        sys.exit(_TOO_LONG)
    json.dump(styled, sys.stdout)


if __name__ == "__main__":
    main()
