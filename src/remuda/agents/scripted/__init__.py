"""The scripted agent: a real process that speaks ACP and follows a playbook instead of asking a model.

It serves demos and tests, where it must cost next to nothing, so it starts in about the time of a bare Python: it
uses the standard library only, none of Remuda's other rooms, and no dataclasses (their import alone would double
the time to start). What a playbook can say is told in playbook.py.
"""
