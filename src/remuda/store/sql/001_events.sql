-- The log. `seq` is the version: the next event must take the next number, so two writers cannot both win.
create table events (
  seq   integer primary key,
  at    real    not null,
  cause text    not null,
  kind  text    not null,
  agent text    not null,
  data  blob    not null
) strict;
