"""placeholder"""
class TemplateSyntax(Exception): ...
class RenderLimit(Exception): ...
class RenderFailed(Exception): ...
def compile_source(s): return s
def check(s): return []
def compile_mjml(s): return s
def missing_variables(schema, v): return []
class R: pass
def render_email(c, ctx):
    import liquid
    r=R(); r.subject=c["subject"]; r.text=c["text"]; r.html=c["html"]; return r
def render_sms(c, ctx): return c["text"]
def render_push(c, ctx):
    r=R(); r.title=c["title"]; r.body=c["body"]; r.data={}; r.badge=None; r.image=r.link=""; return r
