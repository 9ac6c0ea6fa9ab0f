"""A stack of many teams: `fleet usage` as a table, `fleet report` as a page of HTML."""
