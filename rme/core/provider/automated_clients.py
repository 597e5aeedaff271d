"""User agents of automated clients that open emails and follow links: scanners, image proxies.

Gmail's and Yahoo's proxies fetch images for a person who reads, but once, early or not at all, so
that their requests are no evidence of an open.
"""

import re

MACHINES: tuple[str, ...] = (
    # image proxies of mailbox providers
    r"GoogleImageProxy",  # https://developers.google.com/search/docs/crawling-indexing
    r"YahooMailProxy",  # https://help.yahoo.com/kb/yahoo-mail-proxy-SLN28749.html
    r"Edge/12\.246 Mozilla/5\.0",  # Gmail's prefetch: https://bird.com/blog/gmail-prefetching-images
    r"^Mozilla/5\.0$",  # Apple's privacy proxy: https://www.mailgun.com/blog/product/bot-detection/
    r"OutlookImageProxy",
    # Office's requests before it opens a link. `ms-office` alone is a person's Outlook.
    r"Microsoft Office (Existence|Protocol) Discovery",
    # scanners of links
    r"barracuda|BarracudaCentral",  # https://www.barracudacentral.org/about
    r"mimecast",
    r"proofpoint|urldefense",
    r"safelinks|Microsoft-ATP|SkypeUriPreview|BingPreview",
    r"symantec|messagelabs|websense|forcepoint|ironport|trendmicro|sophos|fireeye|cloudmark",
    r"zscaler|netcraft|urlscan|virustotal|PhishTank|IPQS|PaloAlto|Expanse",
    # previews of links in other programs
    r"Slackbot|Slack-ImgProxy|Discordbot|TelegramBot|WhatsApp|facebookexternalhit|LinkedInBot",
    r"Twitterbot|Google-Safety|Googlebot|AdsBot-Google|bingbot|Applebot|YandexBot|DuckDuckBot",
    # programs (https://developer.mozilla.org/docs/Web/HTTP/Headers/User-Agent#library_and_net_tool_ua_strings)
    r"^(curl|wget|python|java|go-http-client|okhttp|axios|node|ruby|perl|php|libwww)\b",
    r"HeadlessChrome|PhantomJS|Puppeteer|Playwright|Selenium",
    r"\b(bot|crawler|spider|scanner|preview|prefetch|monitor(ing)?)\b",
)
_MACHINES = re.compile("|".join(MACHINES), re.IGNORECASE)


def is_machine(user_agent: str) -> bool:
    """Return whether a user agent is that of an automated client, or empty."""
    return not user_agent.strip() or bool(_MACHINES.search(user_agent[:500]))
