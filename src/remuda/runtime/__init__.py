"""THE LOOP: takes commands, keeps events, owes effects. Read loop.py first."""
