"""User agents: those of persons' clients, and those of scanners and proxies."""

import pytest

from rme.core.provider.automated_clients import is_machine

WEBKIT = "AppleWebKit/605.1.15 (KHTML, like Gecko)"
PERSONS = [
    "Mozilla/4.0 (compatible; MSIE 7.0; Windows NT 10.0; WOW64; Trident/8.0; .NET4.0C; .NET4.0E; "
    "Microsoft Outlook 16.0.4266; ms-office; MSOffice 16)",
    "Mozilla/4.0 (compatible; MSIE 7.0; Windows NT 6.1; Trident/7.0; Microsoft Outlook 15.0.5059; "
    "ms-office; MSOffice 15)",
    "Mozilla/4.0 (compatible; ms-office; MSOffice 16)",
    "Microsoft Office/16.0 (Windows NT 10.0; Microsoft Outlook 16.0.12026; Pro)",
    "Microsoft Office/16.0 (Macintosh; Intel Mac OS X 10.15; MacOutlook/16.78)",
    "Outlook-iOS/723.3815442.prod.iphone (4.2.0)",
    "Outlook-Android/2.0",
    f"Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) {WEBKIT} Mobile/15E148",
    f"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) {WEBKIT}",
    "Mozilla/5.0 (X11; Linux x86_64; rv:115.0) Gecko/20100101 Thunderbird/115.5.1",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/120.0.0.0 Safari/537.36 Edg/120.0.0.0",
    "Mozilla/5.0 (Linux; Android 10; CUBOT X30) AppleWebKit/537.36 Chrome/90.0 Mobile Safari",
    "Mozilla/5.0 (Windows NT 10.0; WOW64; rv:45.0) Gecko/20100101 eM_Client/9.2",
    "YahooMobileMail/1.0 (Android Mail; 7.0) (hero2lte;samsung;SM-G935F;8.0.0/R16NW)",
    "Lotus-Notes/6.0; Windows-NT",
]
MACHINES = [
    "",
    "Mozilla/5.0",
    "Mozilla/5.0 (Windows NT 5.1; rv:11.0) Gecko Firefox/11.0 (via ggpht.com GoogleImageProxy)",
    "YahooMailProxy; https://help.yahoo.com/kb/yahoo-mail-proxy-SLN28749.html",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/42.0.2311.135 Safari/537.36 Edge/12.246 Mozilla/5.0",
    "Microsoft Office Existence Discovery",
    "Microsoft Office Protocol Discovery",
    "Barracuda Sentinel (EE)",
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)",
    "python-requests/2.31.0",
    "curl/8.4.0",
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 HeadlessChrome/120.0 Safari/537.36",
]


@pytest.mark.parametrize("user_agent", PERSONS)
def test_clients_of_persons_are_not_machines(user_agent: str) -> None:
    assert not is_machine(user_agent)


@pytest.mark.parametrize("user_agent", MACHINES)
def test_scanners_and_proxies_are_machines(user_agent: str) -> None:
    assert is_machine(user_agent)
