"""KEEPS a record of every turn: what was asked, what changed, what was checked, in a form that anyone can verify.

Two halves. The journal (`files`, `repository`, `snapshot`, `redact`, `journal`) writes down facts while a turn runs;
hooks of interactive agents wait for it, so nothing in it imports what costs time. Everything else is a function from
those facts to bytes, and a performer (`publish`) that brings the bytes into git, step by step, as often as needed.
"""
