"""Words that entity extraction knows, in lower case."""

from __future__ import annotations

from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


CALENDAR: Final = _words(
    """
    january february march april may june july august september october november december jan feb mar
    apr jun jul aug sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday mon
    tue tues wed thu thur thurs fri sat sun today tomorrow yesterday spring summer autumn winter
    """
)
#: Words that are written large only where they stand, never as a part of a name's edge.
FILLERS: Final = _words(
    """
    a about above after again against all almost already also although always am an and another any
    anyone anything are aren as at back be because been before behind being below besides between beyond
    both but by can cannot come could currently did didn do does doesn doing don done down due during
    each either else especially etc even every everyone everything except few finally for from further
    furthermore generally get given go had has hasn have haven having he hello hence her here hers
    herself hey hi him himself his hopefully how however i idea if in indeed initially inside instead
    into is isn it item its itself just keep know lastly later least less let like likewise many maybe
    me meanwhile might mine more moreover most mostly much must my myself near neither never
    nevertheless no nobody none nor normally not nothing now nowhere obviously of off often ok okay on
    once one only onto or originally others otherwise our ours out outside over per perhaps personally
    please possibly previously probably quite rather really recently regarding secondly see several
    shall she should similarly simply since so some somebody someone something sometimes somewhere soon
    still such sure take than thank thanks that the their theirs them themselves then there therefore
    these they thing things this those though through throughout thus to together too toward towards two
    typically under unfortunately unless unlike until up upon us usually various versus very via vs want
    was wasn we welcome well were weren what whatever when whenever where whereas wherever whether which
    whichever while who whoever whole whom whose why will with within without won would wouldn yes yet
    you your yours yourself
    """
)
#: Words that name nothing alone, but may be a part of a name: New York, Key West.
GENERIC: Final = _words(
    """
    best better case chapter first general good key last level new next old other own part right same
    second third three four five six seven eight nine ten abstract acknowledgements action actions
    active agenda answer answers appendix archived assumption assumptions author authors background
    blocked bug bugs caution closed comment comments completed conclusion conclusions context cons
    criteria critical danger date deadline decision decisions default definition deprecated description
    details discussion draft error errors example examples failed false faq figure final findings fix
    fixed fixme goal goals hint hypothesis important info introduction issue issues limitations link
    links list log main meeting method methods milestone motivation name note notes objective objectives
    observation observations open option options output overview owner page people phase plan plans
    point points priority problem problems proposal pros purpose question questions rationale readme
    reason recommendation recommendations related resolved result results review risk risks scope
    section setup situation solution solutions status step steps summary table task tasks tbd team tip
    tldr title todo topic topics total true type unknown untitled update updated updates usage value
    version warning wip
    """
)
#: What commands and instructions begin with; they end no name, so they are only cut from its front.
OPENERS: Final = _words(
    """
    accept access according add adding adjust allow apply ask assign assume avoid based begin bring
    build built call change check choose clean click clone close compare complete configure confirm
    connect consider contact contrast convert copy create created define delete deploy determine develop
    did disable discuss download draw edit enable ensure enter establish evaluate explain export extend
    extract feel fetch fill find follow fork generate give given grant handle help identify ignore
    implement import improve include inspect install invoke join launch learn leave link load look
    maintain make manage measure merge migrate modify monitor move navigate notice observe obtain offer
    open pass paste perform pick place prefer prepare press prevent protect provide publish pull push
    put read receive record reduce refer register reject reload remember remove rename replace report
    request require resolve restart restore return reuse review run save say search select send serve
    set share show sign skip source specify spend start stop store submit suppose switch test tell think
    track train treat try turn understand unzip upgrade upload use used using verify view visit wait
    watch whilst work write written
    """
)
COMMANDS: Final = _words(
    """
    apt apt-get aws bash brew bun bundle cargo cat cd chmod chown conda cp curl deno docker dotnet echo
    export git go gradle grep helm kill kubectl ln ls make mkdir mv mvn nix node npm npx pip pip3 pipx
    pnpm poetry pytest python python3 rm ruby sed sh source ssh ssh-keygen sudo systemctl tar terraform
    touch uv uvx wget yarn
    """
)
COUNTED: Final = _words(
    """
    q v day week month year quarter round sprint node test item row line page act art group unit fy vol
    volume
    """
)
