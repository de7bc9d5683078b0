"""Shapes of keys that the rules of Betterleaks leave out or draw too narrowly, with the source of each shape.

The sources were read in November 2026. A shape begins with fixed text, as the rules of `rules.json` do.
"""

from __future__ import annotations

from typing import Final

#: Kind, fixed beginnings, pattern, and minimum entropy in bits for each character.
Shape = tuple[str, tuple[str, ...], str, float]

OWN_SHAPES: Final[tuple[Shape, ...]] = (
    # JSON web token (RFC 7519): base64url of `{"`, payload, and a signature that may be empty.
    (
        "json web token", ("eyJ",),
        r"eyJ[A-Za-z0-9_-]{8,2000}\.eyJ[A-Za-z0-9_-]{8,6000}\.[A-Za-z0-9_-]{0,2000}", 3.5,
    ),
    # Anthropic: API, administration and OAuth keys of all versions (docs.anthropic.com, secret scanning).
    ("anthropic api key", ("sk-ant-",), r"sk-ant-[a-z]{3,8}\d{2}-[A-Za-z0-9_-]{60,200}", 3.5),
    # OpenAI: project, service account and administration keys, and older keys (platform.openai.com).
    (
        "openai api key", ("sk-proj-", "sk-svcacct-", "sk-admin-"),
        r"sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{40,250}", 3.5,
    ),
    # OpenAI before 2024 (48 characters), DeepSeek and others with its form (32 and more).
    ("api key", ("sk-",), r"sk-[A-Za-z0-9]{32,64}", 3.3),
    # Hugging Face (huggingface.co/docs/hub/security-tokens).
    ("hugging face token", ("hf_", "api_org_"), r"(?:hf|api_org)_[A-Za-z0-9]{30,40}", 3.5),
    # Google: OAuth client secret, access and refresh tokens (developers.google.com/identity).
    ("google client secret", ("GOCSPX-",), r"GOCSPX-[A-Za-z0-9_-]{24,40}", 3.0),
    ("google access token", ("ya29.",), r"ya29\.[A-Za-z0-9_-]{30,1000}", 3.5),
    ("google refresh token", ("1//0",), r"1//0[A-Za-z0-9_-]{40,200}", 3.5),
    # Twilio: API key (twilio.com/docs/iam/api-keys).
    ("twilio api key", ("SK",), r"SK[0-9a-f]{32}", 3.0),
    # Discord: id in base64, time and signature (discord.com/developers/docs/reference#authentication).
    (
        "discord bot token", ("MD", "MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT"),
        r"[MNO][A-Za-z0-9_-]{23,28}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,45}", 3.5,
    ),
    # Square (developer.squareup.com).
    ("square access token", ("sq0atp-", "sq0csp-"), r"sq0(?:atp|csp)-[A-Za-z0-9_-]{22,60}", 3.0),
    # Mailgun (documentation.mailgun.com).
    ("mailgun api key", ("key-",), r"key-[0-9a-f]{32}", 3.0),
    # Airtable (airtable.com/developers/web/guides/personal-access-tokens).
    ("airtable token", ("pat",), r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}", 3.3),
    # Fly.io (fly.io/docs/security/tokens).
    ("fly.io token", ("fm2_", "fo1_"), r"f(?:m2|o1)_[A-Za-z0-9+/=_-]{40,1000}", 3.5),
    # HashiCorp Vault, service tokens (developer.hashicorp.com/vault/docs/concepts/tokens).
    ("vault token", ("hvs.",), r"hvs\.[A-Za-z0-9_-]{24,200}", 3.0),
    # Incoming webhooks. Who has the address may post (api.slack.com, discord.com/developers).
    (
        "slack webhook", ("hooks.slack.com/",),
        r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{40,80}", 3.0,
    ),
    (
        "discord webhook", ("discord.com/api/webhooks/", "discordapp.com/api/webhooks/"),
        r"discord(?:app)?\.com/api/webhooks/\d{17,20}/[A-Za-z0-9_-]{60,80}", 3.0,
    ),
)  # fmt: skip
