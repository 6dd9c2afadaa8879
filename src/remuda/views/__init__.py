"""SHOWS: what people and programs see of the state. Functions of what is durable; nothing is kept here."""
