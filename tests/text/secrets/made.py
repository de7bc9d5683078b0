"""Made-up secrets and texts that only look like secrets, from a seed.

Secrets are put together at run time from parts, so that scanners of repositories do not report this file.
`secrets(seed)` and `look_alikes(seed)` return texts. The value of a secret is known, so a
test can check that nothing of it stays visible.
"""

from __future__ import annotations

import base64
import hashlib
import random
import string
import uuid
from collections.abc import Callable, Iterator
from typing import Final

LETTERS: Final = string.ascii_letters
ALNUM: Final = string.ascii_letters + string.digits
HEX: Final = "0123456789abcdef"
URL: Final = ALNUM + "-_"
#: Numbers of secrets and of look-alikes that are measured.
SECRETS: Final = 300
LOOK_ALIKES: Final = 3_000

Maker = Callable[[random.Random], str]


def _of(characters: str, length: int) -> Maker:
    return lambda r: "".join(r.choices(characters, k=length))


def _joined(*parts: str | Maker) -> Maker:
    return lambda r: "".join(part if isinstance(part, str) else part(r) for part in parts)


def _jwt(r: random.Random) -> str:
    def part(text: str) -> str:
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    head = part('{"alg":"' + r.choice(["HS256", "RS256", "ES256"]) + '","typ":"JWT"}')
    body = part(
        f'{{"sub":"user-{r.randrange(10**6)}","iat":{r.randrange(10**9)},"name":"{_of(LETTERS, 9)(r)}"}}'
    )
    return f"{head}.{body}.{_of(URL, 43)(r)}"


def _password(r: random.Random) -> str:
    parts = [*r.choices(string.ascii_lowercase, k=5), *r.choices(string.ascii_uppercase, k=3)]
    parts += [*r.choices("23456789", k=3), *r.choices("!%+?^~", k=2)]
    r.shuffle(parts)
    return r.choice(LETTERS) + "".join(parts)


#: Keys of providers by name. Their parts are joined at run time.
PROVIDERS: Final[dict[str, Maker]] = {
    "github": _joined("gh", lambda r: r.choice("pousr"), "_", _of(ALNUM, 36)),
    "github fine": _joined("github", "_pat_", _of(ALNUM, 22), "_", _of(ALNUM, 59)),
    "gitlab": _joined("glp", "at-", _of(URL, 20)),
    "aws": _joined("AK", "IA", _of("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16)),
    "slack bot": _joined("xo", "xb-", _of("23456789", 12), "-", _of("23456789", 12), "-", _of(ALNUM, 24)),
    "slack hook": _joined(
        "https://hooks.sl", "ack.com/services/T", _of(ALNUM, 9), "/B", _of(ALNUM, 10), "/", _of(ALNUM, 24)
    ),
    "stripe": _joined("sk", "_live_", _of(ALNUM, 24)),
    "openai": _joined("sk", "-proj-", _of(URL, 74), "T3Blb", "kFJ", _of(URL, 74)),
    "openai old": _joined("sk", "-", _of(ALNUM, 20), "T3Blb", "kFJ", _of(ALNUM, 20)),
    "anthropic": _joined("sk", "-ant-api03-", _of(URL, 93), "AA"),
    "google": _joined("AI", "za", _of(URL, 35)),
    "google oauth": _joined("GOC", "SPX-", _of(URL, 28)),
    "npm": _joined("np", "m_", _of(ALNUM, 36)),
    "pypi": _joined("py", "pi-AgEIcHlwaS5vcmc", _of(URL, 150)),
    "hugging face": _joined("h", "f_", _of(ALNUM, 34)),
    "twilio": _joined("S", "K", _of(HEX, 32)),
    "sendgrid": _joined("S", "G.", _of(URL, 22), ".", _of(URL, 43)),
    "azure": _joined(_of(ALNUM, 3), "8", "Q~", _of(URL, 34)),
    "digitalocean": _joined("do", "p_v1_", _of(HEX, 64)),
    "telegram": _joined(_of("123456789", 10), ":A", "A", _of(URL, 33)),
    "discord": _joined("MT", _of(ALNUM, 24), ".", _of(URL, 6), ".", _of(URL, 38)),
    "databricks": _joined("da", "pi", _of(HEX, 32)),
    "groq": _joined("gs", "k_", _of(ALNUM, 52)),
    "linear": _joined("lin", "_api_", _of(ALNUM, 40)),
    "shopify": _joined("shp", "at_", _of(HEX, 32)),
    "postman": _joined("PM", "AK-", _of(HEX, 24), "-", _of(HEX, 34)),
    "vault": _joined("hv", "s.", _of(URL, 95)),
    "jwt": _jwt,
}  # fmt: skip
#: Where a key of a provider may stand. `{}` is the key.
PLACES: Final = (
    "export API={}", "key: {}", 'client = Client("{}")', "use `{}` for the test server.", "It is {}.",
    '{{"value": "{}"}}', "curl -H 'X-Key: {}' https://api.internal/",
    "a\\n{}\\nb", "({})", "\x1b[32m{}\x1b[0m",
)  # fmt: skip


def _pem(r: random.Random) -> tuple[str, str]:
    kind = r.choice(["RSA ", "EC ", "OPENSSH ", ""])
    lines = [_of(ALNUM + "+/", 64)(r) for _ in range(r.randrange(3, 26))] + [_of(ALNUM, 26)(r) + "=="]
    begin, end = f"-----BEGIN {kind}PRIVATE" + " KEY-----", f"-----END {kind}PRIVATE" + " KEY-----"
    form = r.randrange(5)
    if form == 1:
        return '{"private_key": "' + "\\n".join([begin, *lines, end]) + '\\n"}', lines[1]
    if form == 2:
        return "\n".join([begin, *lines[:-1], "and so on"]), lines[1]
    if form == 3:
        return "\n".join(["the end is:", *lines, end]), lines[1]
    if form == 4:
        return "\n".join(f"{n:6}→{line}" for n, line in enumerate([begin, *lines, end], 1)), lines[1]
    return "\n".join([begin, *lines, end, "That was it."]), lines[1]


def _assigned(r: random.Random) -> tuple[str, str]:
    password, token, key = _password(r), _of(ALNUM, r.randrange(24, 60))(r), _of(ALNUM + "+/", 40)(r)
    return r.choice(
        [
            (f"DB_PASSWORD={password}", password),
            (f'"password": "{password}",', password),
            (f"password: {password}  # staging", password),
            (f"**Password:** {password}", password),
            (f"mysql --password {password} -u app", password),
            (f"SESSION_SECRET='{token}'", token),
            (f'auth_token: str = "{token}"', token),
            (f"aws_secret_access_key = {key}", key),
            (f'{{\\"api_key\\": \\"{token}\\"}}', token),
            (f"https://api.internal/v1?api_key={token}&page=2", token),
            (f"Authorization: Bearer {token}", token),
            (f"<clientSecret>{token}</clientSecret>", token),
            (f"AccountKey={base64.b64encode(r.randbytes(64)).decode()}", ""),
            (f"api-key: {uuid.UUID(int=r.getrandbits(128), version=4)}", ""),
            ("Authorization: Basic " + base64.b64encode(f"app:{password}".encode()).decode(), ""),
        ]
    )


def _address(r: random.Random) -> tuple[str, str]:
    password = _of(ALNUM, r.randrange(10, 24))(r)
    scheme = r.choice(["postgres", "mysql", "mongodb+srv", "redis", "amqp", "https"])
    user = "" if scheme == "redis" else "app"
    return f"URL is {scheme}://{user}:{password}@db.internal:5432/shop", password


def secrets(seed: int = 1) -> Iterator[tuple[str, str, str]]:
    """Yield family, text and secret value of each made-up secret. Without a known value it is empty."""
    r = random.Random(seed)
    names = list(PROVIDERS)
    for number in range(SECRETS):
        if number % 10 < 6:
            name = names[number // 10 * 6 % len(names) + number % 10 - len(names)]
            key = PROVIDERS[name](r)
            yield name, r.choice(PLACES).format(key), key
        elif number % 10 == 6:
            yield ("private key", *_pem(r))
        elif number % 10 == 7:
            yield ("address", *_address(r))
        else:
            yield ("assignment", *_assigned(r))


#: Look-alikes. Each takes a generator of random numbers and returns a text without a secret.
_FALSE: Final[tuple[Maker, ...]] = (
    lambda r: hashlib.sha256(r.randbytes(8)).hexdigest(),
    lambda r: f"commit {hashlib.sha1(r.randbytes(8)).hexdigest()}",  # a commit id, not a protection
    lambda r: f"md5: {_of(HEX, 32)(r)}",
    lambda r: f"id: {uuid.UUID(int=r.getrandbits(128), version=4)}",
    lambda r: f'"token_id": "{uuid.UUID(int=r.getrandbits(128), version=4)}"',
    lambda r: f"![](data:image/png;base64,{base64.b64encode(r.randbytes(600)).decode()})",
    lambda r: f'"integrity": "sha512-{base64.b64encode(r.randbytes(64)).decode()}",',
    lambda r: f"h1:{base64.b64encode(r.randbytes(32)).decode()}",
    lambda r: f'checksum = "{_of(HEX, 64)(r)}"',
    lambda r: "AKIA" + "IOSFODNN7" + "EXAMPLE",
    lambda r: "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCY" + "EXAMPLEKEY",
    lambda r: f"api_key: {r.choice(['your-api-key-here', 'changeme', 'x' * 20, '...'])}",
    lambda r: f"token: {r.choice(['<token>', '$TOKEN', '${TOKEN}', '{{ token }}', '%TOKEN%', '[redacted]'])}",
    lambda r: f"GITHUB_TOKEN: ${{{{ secrets.{_of(string.ascii_uppercase, 6)(r)} }}}}",
    lambda r: f"password = os.environ['{_of(string.ascii_uppercase, 8)(r)}_PASSWORD']",
    lambda r: f"self.token = config.auth.{_of(string.ascii_lowercase, 8)(r)}_token",
    lambda r: f"password: process.env.{_of(string.ascii_uppercase, 9)(r)}",
    lambda r: "Passwords: required, at least 12 characters, hashed with argon2id or bcrypt.",
    lambda r: f"The token expires after {r.randrange(90)} days, the key on 2026-{r.randrange(10, 13)}-01.",
    lambda r: f"max_tokens: {r.randrange(10**6)}",
    lambda r: f"next_page_token: {_of(ALNUM, 40)(r)}",
    lambda r: f"cache_key={_of(HEX, 40)(r)}",
    lambda r: f"csrf_token: {_of(ALNUM, 32)(r)}",
    lambda r: f"https://example.com/a/{_of(ALNUM, 22)(r)}?id={_of(HEX, 24)(r)}",
    lambda r: "postgres://user:password@localhost:5432/app",
    lambda r: "redis://:${REDIS_PASSWORD}@cache:6379/0",
    lambda r: f"http://localhost:{r.randrange(1000, 9999)}/path@{r.randrange(9)}",
    lambda r: f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{_of(ALNUM, 43)(r)} ann@laptop",
    lambda r: f"-----BEGIN PUBLIC KEY-----\n{_of(ALNUM, 64)(r)}\n-----END PUBLIC KEY-----",
    lambda r: f"-----BEGIN CERTIFICATE-----\n{_of(ALNUM, 64)(r)}\n-----END CERTIFICATE-----",
    lambda r: "-----BEGIN PRIVATE" + " KEY-----\n<your key>\n-----END PRIVATE" + " KEY-----",
    lambda r: "ghp_" + "x" * 36,
    lambda r: "sk-" + "1234567890abcdef" * 3,
    lambda r: f"class {_of(LETTERS, 12)(r)}TokenProviderFactoryImplementation2:",
    lambda r: f"resolved \"https://registry.invalid/left-pad-1.3.{r.randrange(9)}.tgz#{_of(HEX, 40)(r)}\"",
    lambda r: f"pk_live_{_of(ALNUM, 24)(r)} is the publishable key",
    lambda r: f"password_hash: $2b$12${_of(ALNUM, 53)(r)}",
    lambda r: f"secret_name: prod/shop/{_of(string.ascii_lowercase, 8)(r)}-v2",
    lambda r: f"secretRef: vault:kv/data/{_of(string.ascii_lowercase, 6)(r)}#token",
    lambda r: f"def test_token_{_of(string.ascii_lowercase, 9)(r)}_is_refused_when_expired(): ...",
    lambda r: f"sk-learn-{r.randrange(9)}.{r.randrange(9)}-cp311-manylinux_2_17_x86_64.whl",
    lambda r: f"primary key = {r.randrange(10**9)}, sort key: {_of(HEX, 24)(r)}",
    lambda r: f"password: str = Field(min_length={r.randrange(8, 20)})",
    lambda r: f"tokenizer: bert-base-{_of(string.ascii_lowercase, 7)(r)}-v{r.randrange(9)}",
    lambda r: f"0x{_of(HEX, 40)(r)} sent 3 ETH",
    lambda r: f"arn:aws:iam::{r.randrange(10**11, 10**12)}:role/deploy-{_of(string.ascii_lowercase, 8)(r)}",
    lambda r: f"Bearer <{_of(string.ascii_lowercase, 8)(r)}>, or Authorization: Bearer $TOKEN",
    lambda r: f"docker.io/library/app@sha256:{_of(HEX, 64)(r)}",
    lambda r: f"Use basic authentication{r.choice(['', ' schemes', ' headers'])}, never bearer tokens.",
    lambda r: f"[secret: github token] and SESSION_SECRET=[secret: secret value] {r.randrange(9)}",
)  # fmt: skip


def look_alikes(seed: int = 2) -> Iterator[str]:
    """Yield texts that look like secrets but are not."""
    r = random.Random(seed)
    for number in range(LOOK_ALIKES):
        yield _FALSE[number % len(_FALSE)](r)
