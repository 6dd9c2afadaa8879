-- The state as it was at `seq`. `shape` is the fingerprint of the types it was written from; one written from other
-- types is passed over and made anew from the events.
create table snapshots (
  seq   integer primary key,
  shape text not null,
  data  blob not null
) strict;
